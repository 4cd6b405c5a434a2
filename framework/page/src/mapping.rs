//! Making the mapping, passing it to the host, attaching to it there.

use std::io;
use std::sync::atomic::Ordering;

use crate::clock::{Clock, Source};
use crate::layout::{Layout, MAGIC, VERSION};
use crate::sys::{self, Mapping, SharedHandle};

/// A mapped page.
pub struct Page {
    mapping: Mapping,
    handle: SharedHandle,
    source: Source,
}

/// Why a host could not attach to the page that it was given.
#[derive(Debug)]
pub enum AttachError {
    /// The mapping itself failed.
    Map(io::Error),
    /// The page was made by another version of Waylay.
    Foreign {
        /// What the page says: magic, version, size.
        found: (u64, u32, u32),
    },
}

impl std::fmt::Display for AttachError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AttachError::Map(error) => write!(f, "cannot map the shared page: {error}"),
            AttachError::Foreign { found: (magic, version, size) } => write!(
                f,
                "the shared page is not of this version (magic {magic:#x}, version {version}, {size} bytes; \
                 this is version {VERSION}, {} bytes): driver and host must be the same build",
                size_of::<Layout>()
            ),
        }
    }
}

impl std::error::Error for AttachError {}

impl Page {
    /// Driver: makes a fresh page whose ticks come from `clock`.
    pub fn create(clock: &Clock) -> io::Result<Page> {
        let handle = sys::create_shared(size_of::<Layout>())?;
        let mapping = sys::map(&handle, size_of::<Layout>())?;
        let page = Page { mapping, handle, source: clock.source() };
        page.layout().set_guards();
        let header = &page.layout().header;
        header.version.store(VERSION, Ordering::Relaxed);
        header.size.store(size_of::<Layout>() as u32, Ordering::Relaxed);
        header.clock.store(clock.source() as u32, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(page)
    }

    /// Host: attaches to the page that it inherited.
    pub fn attach(handle: SharedHandle) -> Result<Page, AttachError> {
        let mapping = sys::map(&handle, size_of::<Layout>()).map_err(AttachError::Map)?;
        let mut page = Page { mapping, handle, source: Source::Monotonic };
        let header = &page.layout().header;
        let found = (
            header.magic.load(Ordering::Acquire),
            header.version.load(Ordering::Relaxed),
            header.size.load(Ordering::Relaxed),
        );
        let source = Source::from_number(header.clock.load(Ordering::Relaxed));
        match source {
            Some(source) if found == (MAGIC, VERSION, size_of::<Layout>() as u32) => {
                page.source = source;
                Ok(page)
            }
            _ => Err(AttachError::Foreign { found }),
        }
    }

    /// The page's words.
    pub fn layout(&self) -> &Layout {
        // SAFETY: the mapping is at least `size_of::<Layout>()` bytes, page-aligned, and lives as long as `self`; every
        // field of `Layout` is valid for any bytes (integers and atomics), and other processes change them only
        // through atomics or under the protocol of `record`.
        unsafe { &*(self.mapping.as_ptr().cast::<Layout>()) }
    }

    /// Whether what only the driver writes when it makes the page is as it was made.
    pub fn is_intact(&self) -> bool {
        let header = &self.layout().header;
        header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION
            && header.size.load(Ordering::Relaxed) == size_of::<Layout>() as u32
            && header.clock.load(Ordering::Relaxed) == self.source as u32
            && self.layout().guards_are_intact()
    }

    /// What a host needs to attach.
    pub fn handle(&self) -> &SharedHandle {
        &self.handle
    }

    /// Where this page's ticks come from.
    pub fn source(&self) -> Source {
        self.source
    }
}
