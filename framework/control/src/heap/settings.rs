//! `WAYLAY_HEAP`: `fd=<number>,sample=<bytes>[,seed=<number>]`, in any order.
//!
//! Read without allocation, from the environment the loader hands to the constructor: `getenv` may not work
//! yet, and before the constructor there may be no environment at all.

use std::ffi::{CStr, c_char};

/// What the driver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The inherited memfd with the region.
    pub(super) fd: i32,
    /// Mean bytes between samples.
    pub(super) period: u64,
    /// Start of the random numbers, for a repeatable choice of samples.
    pub(super) seed: Option<u64>,
}

/// Finds the setting in an environment block. None when it is absent or makes no sense; the driver sees a
/// region that nobody claimed.
///
/// # Safety
///
/// `environment` is null or a null-terminated array of C strings.
pub(super) unsafe fn from_environment(environment: *const *const c_char) -> Option<Settings> {
    if environment.is_null() {
        return None;
    }
    let mut entry = environment;
    loop {
        // SAFETY: not past the end, because the terminating null ends the loop; the caller vouches for the
        // strings.
        let text = unsafe {
            if (*entry).is_null() {
                return None;
            }
            CStr::from_ptr(*entry)
        };
        if let Some(value) = text.to_bytes().strip_prefix(b"WAYLAY_HEAP=") {
            return parse(value);
        }
        // SAFETY: the entry was not the terminating one.
        entry = unsafe { entry.add(1) };
    }
}

fn parse(value: &[u8]) -> Option<Settings> {
    let (mut fd, mut period, mut seed) = (None, None, None);
    for pair in std::str::from_utf8(value).ok()?.split(',') {
        let (key, number) = pair.split_once('=')?;
        match key {
            "fd" => fd = Some(number.parse::<i32>().ok().filter(|fd| *fd >= 0)?),
            "sample" => period = Some(number.parse::<u64>().ok().filter(|period| *period > 0)?),
            "seed" => seed = Some(number.parse().ok()?),
            _ => return None,
        }
    }
    Some(Settings { fd: fd?, period: period?, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_settings() {
        assert_eq!(parse(b"fd=7,sample=524288"), Some(Settings { fd: 7, period: 524_288, seed: None }));
        assert_eq!(parse(b"seed=3,sample=1,fd=0"), Some(Settings { fd: 0, period: 1, seed: Some(3) }));
    }

    #[test]
    fn bad_settings_switch_it_off() {
        for bad in
            ["", "fd=7", "sample=9", "fd=-1,sample=9", "fd=7,sample=0", "fd=x,sample=9", "fd=7,sample=9,z=1"]
        {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(b"fd=7,sample=\xff"), None);
    }

    #[test]
    fn found_among_others() {
        let texts = [c"PATH=/bin", c"WAYLAY_HEAPS=no", c"WAYLAY_HEAP=fd=3,sample=64", c"A=b"];
        let mut block: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        block.push(std::ptr::null());
        // SAFETY: null-terminated arrays of C strings, and null.
        unsafe {
            assert_eq!(from_environment(block.as_ptr()).map(|settings| settings.fd), Some(3));
            assert_eq!(from_environment(block[3..].as_ptr()), None);
            assert_eq!(from_environment(std::ptr::null()), None);
        }
    }
}
