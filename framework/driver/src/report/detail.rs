//! How much is printed: all of it, or so much that a campaign with many failures fits on one page of the terminal.

/// How much is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// About sixty lines: the first failures as blocks, the others as a line each; tests by scenario when they are many. What is left
    /// out is in the campaign's folder, and `waylay show` and `waylay report` have it.
    #[default]
    Page,
    /// Every block, every note and every test.
    All,
}

/// Lines after which a failure is a line and no longer a block.
const BLOCKS_UNTIL: usize = 10;
/// Lines after which notes are left out.
const NOTES_UNTIL: usize = 16;
/// Lines that the end of a campaign may take before its tests are told by scenario.
pub(super) const SUMMARY: usize = 24;
/// Failures that the end of a campaign lists.
pub(super) const LISTED: usize = 20;

/// What was printed of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    lines: usize,
}

impl Page {
    /// Counts what was printed.
    pub(super) fn written(&mut self, text: &str) {
        self.lines += text.lines().count();
    }

    pub(super) fn has_room_for_a_block(&self) -> bool {
        self.lines <= BLOCKS_UNTIL
    }

    pub(super) fn has_room_for_a_note(&self) -> bool {
        self.lines <= NOTES_UNTIL
    }
}
