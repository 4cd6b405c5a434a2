//! What is known of the code at an address, whichever debug information says it.

/// One function at an address; inlined ones come before the one that holds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) function: Option<String>,
    pub(super) function_offset: Option<u64>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) inlined: bool,
}
