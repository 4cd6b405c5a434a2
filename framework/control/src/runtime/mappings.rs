//! Lines of `/proc/self/maps`, for decisions that are made once in a run. Nothing is allocated.

use crate::sys;

/// Longer lines are cut: what is of interest stands in front, and what is looked for at the end is short.
const LINE: usize = 512;

/// Whether one of the mappings of the process is as asked; true when they cannot be read.
#[cold]
pub(super) fn has(mut asked: impl FnMut(&[u8]) -> bool) -> bool {
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let path = c"/proc/self/maps".as_ptr() as usize;
    // SAFETY: the path ends with a zero byte; the kernel writes no more than the length says.
    unsafe {
        let fd = sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]);
        if fd < 0 {
            return true;
        }
        let (mut block, mut line, mut len, mut found) = ([0u8; 4096], [0u8; LINE], 0, false);
        loop {
            let read = sys::call(libc::SYS_read, [fd as usize, block.as_mut_ptr() as usize, block.len(), 0, 0, 0]);
            if read <= 0 || found {
                break;
            }
            for &byte in &block[..read as usize] {
                if byte == b'\n' {
                    found |= asked(&line[..len]);
                    len = 0;
                } else if len < LINE {
                    line[len] = byte;
                    len += 1;
                }
            }
        }
        sys::call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        found
    }
}

/// First and last byte of a shared mapping that another process may have, too: one of a file, or of System V. What is shared and
/// has no name can only be inherited.
pub(super) fn shared(line: &[u8]) -> Option<(usize, usize)> {
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let range = str::from_utf8(fields.next()?).ok()?;
    let (start, end) = range.split_once('-')?;
    let shared = fields.next()?.get(3) == Some(&b's');
    let name = fields.nth(3).unwrap_or_default();
    let nameless = name.is_empty() || name == b"/dev/zero" || name.starts_with(b"anon_inode:");
    let range = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()? - 1);
    (shared && !nameless).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_name_can_be_shared_without_being_inherited() {
        let of = |line: &str| shared(line.as_bytes()).is_some();
        assert!(of("7f00-8f00 rw-s 00000000 00:1b 12                         /dev/shm/sem.name"));
        assert!(of("7f00-8f00 rw-s 00000000 08:01 99                         /tmp/a file"));
        assert!(of("7f00-8f00 rw-s 00000000 00:01 32769                      /SYSV00000000 (deleted)"));
        assert!(!of("7f00-8f00 rw-p 00000000 08:01 99                         /tmp/file"));
        assert!(!of("7f00-8f00 rw-s 00000000 00:01 5                          /dev/zero (deleted)"));
        assert!(!of("7f00-8f00 rw-p 00000000 00:00 0"));
        assert_eq!(shared(b"10-20 rw-s 0 00:1b 12 /x"), Some((0x10, 0x1f)));
        assert!(has(|line| line.ends_with(b"[stack]")) && !has(|_| false));
    }
}
