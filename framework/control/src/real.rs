//! The functions behind the ones we interpose.
//!
//! Each is looked up once with `dlsym(RTLD_NEXT)`, on first use: interposed functions are called before our
//! constructor runs, by other constructors and by sanitizer runtimes.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::sys;

/// One function of the next library in lookup order.
pub(crate) struct Real {
    name: &'static CStr,
    version: Option<&'static CStr>,
    /// Null until it is looked up. Assembly looks at it.
    pub(crate) at: AtomicPtr<c_void>,
}

impl Real {
    /// The default version of `name`.
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, version: None, at: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// One version of `name`, where the oldest is what a plain lookup would give.
    pub(crate) const fn versioned(name: &'static CStr, version: &'static CStr) -> Self {
        Self { name, version: Some(version), at: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    /// Its address.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() { self.look_up() } else { at }
    }

    /// Its address as the loader knows it, null if there is no such function.
    fn found(&self) -> *mut c_void {
        // SAFETY: names are NUL-terminated and static.
        unsafe {
            match self.version {
                None => libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()),
                Some(version) => dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()),
            }
        }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let at = self.found();
        if at.is_null() {
            sys::write(2, b"waylay-control: libc has no ");
            sys::write(2, self.name.to_bytes());
            sys::write(2, b"\n");
            sys::exit_now(3);
        }
        self.at.store(at, Ordering::Relaxed);
        at
    }
}

/// Looks up what [`real!`] declares, as far as it exists.
pub(crate) fn look_all_up() {
    unsafe extern "C" {
        #[link_name = "__start_waylay_real"]
        static START: [u8; 0];
        #[link_name = "__stop_waylay_real"]
        static STOP: [u8; 0];
    }
    let (start, stop) = ((&raw const START).cast::<Real>(), (&raw const STOP).cast::<Real>());
    // SAFETY: the linker sets the two names to the bounds of the section, which holds nothing but these.
    for real in unsafe { core::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) } {
        if real.at.load(Ordering::Relaxed).is_null() {
            real.at.store(real.found(), Ordering::Relaxed);
        }
    }
}

unsafe extern "C" {
    pub(crate) fn dlvsym(
        handle: *mut c_void,
        name: *const core::ffi::c_char,
        version: *const core::ffi::c_char,
    ) -> *mut c_void;
}

/// Declares functions of this module that call the real ones: `fn name(args) -> result;`, with
/// `= "VERSION"` where a plain lookup would find an outdated version.
macro_rules! real {
    ($($name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)? $(= $version:literal)?;)+) => {$(
        /// The function that ours hides.
        ///
        /// # Safety
        /// As for the function of that name in libc.
        #[inline]
        #[allow(non_snake_case)]
        pub(crate) unsafe fn $name($($arg: $kind),*) $(-> $result)? {
            #[unsafe(link_section = "waylay_real")]
            static REAL: crate::real::Real = crate::real::real!(@make $name $($version)?);
            // SAFETY: libc's function of this name has this signature; the rest is the caller's promise.
            unsafe {
                let function: unsafe extern "C-unwind" fn($($kind),*) $(-> $result)? =
                    core::mem::transmute(REAL.address());
                function($($arg),*)
            }
        }
    )+};
    (@make $name:ident) => {
        crate::real::Real::new(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no NUL inside"),
            }
        )
    };
    (@make $name:ident $version:literal) => {
        crate::real::Real::versioned(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name has no NUL inside"),
            },
            $version,
        )
    };
}
pub(crate) use real;
