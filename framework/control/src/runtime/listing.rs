//! What a folder of `/proc` has, read without libc and without allocating.

use crate::sys;

/// The names in a folder.
pub(super) fn for_each_entry(path: &core::ffi::CStr, mut visit: impl FnMut(&core::ffi::CStr)) {
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    // SAFETY: the path is NUL-terminated; the kernel writes at most the length passed, in whole records.
    unsafe {
        let fd =
            sys::call(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0]);
        if fd < 0 {
            return;
        }
        let mut records = [0u64; 512];
        loop {
            let (at, len) = (records.as_mut_ptr() as usize, size_of_val(&records));
            let filled = sys::call(libc::SYS_getdents64, [fd as usize, at, len, 0, 0, 0]);
            if filled <= 0 {
                break;
            }
            let mut offset = 0;
            while offset < filled as usize {
                let record = (at + offset) as *const libc::dirent64;
                visit(core::ffi::CStr::from_ptr((&raw const (*record).d_name).cast()));
                offset += (*record).d_reclen as usize;
            }
        }
        sys::call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
    }
}
