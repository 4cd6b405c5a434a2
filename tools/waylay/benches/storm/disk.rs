//! A small disk for the results of one campaign, which can be filled up or made read-only. It is seen by this thread and
//! what it starts alone, and goes away with them.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Gives this thread mounts of its own; false where that is not allowed.
pub(crate) fn of_its_own() -> bool {
    // SAFETY: plain calls with constant strings; what this thread mounts from now on is its own.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS | libc::CLONE_FS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
    }
}

fn path_of(folder: &Path) -> CString {
    CString::new(folder.as_os_str().as_bytes()).expect("a plain path")
}

/// Puts a disk of that size at a folder.
pub(crate) fn mount(folder: &Path, bytes: u64) -> bool {
    if fs::create_dir_all(folder).is_err() {
        return false;
    }
    let (at, options) = (path_of(folder), CString::new(format!("size={bytes},mode=0755")).expect("plain"));
    // SAFETY: all strings end with a zero and outlive the call.
    unsafe { libc::mount(c"storm".as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast()) == 0 }
}

/// Nothing can be written below it any more: a second view of it lies over the first, and is read-only. Files that are open
/// stay so, as the kernel does not make a disk read-only under a writer.
pub(crate) fn read_only(folder: &Path) -> bool {
    let at = path_of(folder);
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
    // SAFETY: all strings end with a zero and outlive the calls.
    unsafe {
        libc::mount(at.as_ptr(), at.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null()) == 0
            && libc::mount(c"none".as_ptr(), at.as_ptr(), std::ptr::null(), flags, std::ptr::null()) == 0
    }
}

/// Fills it up to the last block.
pub(crate) fn fill(folder: &Path) -> bool {
    use std::io::Write;
    let Ok(mut file) = fs::File::create(folder.join("ballast")) else { return false };
    let block = [0u8; 4096];
    while file.write_all(&block).is_ok() {}
    true
}

/// There is room again.
pub(crate) fn empty(folder: &Path) {
    let _ = fs::remove_file(folder.join("ballast"));
}

/// Takes away whatever is mounted there.
pub(crate) fn unmount(folder: &Path) {
    let at = path_of(folder);
    // SAFETY: the string ends with a zero and outlives the call.
    while unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) } == 0 {}
}
