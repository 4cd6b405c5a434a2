//! Which frames of a deep stack are kept: the innermost, where it went wrong, and the outermost, where it
//! came from. What is left out is nearly always a recursion.

use std::collections::VecDeque;

use crate::stack::{StackEnd, Trust};

use super::{RawFrame, RawStack};

/// Innermost frames kept.
const INNERMOST: usize = 192;
/// Outermost frames kept: together 256.
const OUTERMOST: usize = 64;

#[derive(Default)]
pub(super) struct Kept {
    inner: Vec<RawFrame>,
    outer: VecDeque<RawFrame>,
    dropped: usize,
    /// Frames after the first that were only guessed.
    guessed: usize,
}

impl Kept {
    pub(super) fn push(&mut self, frame: RawFrame) {
        if !self.inner.is_empty() && matches!(frame.trust, Trust::Scan | Trust::FramePointer) {
            self.guessed += 1;
        }
        if self.inner.len() < INNERMOST {
            self.inner.push(frame);
            return;
        }
        if self.outer.len() == OUTERMOST {
            self.outer.pop_front();
            self.dropped += 1;
        }
        self.outer.push_back(frame);
    }

    /// Whether every frame but the first was found without guessing.
    pub(super) fn all_certain(&self) -> bool {
        self.guessed == 0
    }

    pub(super) fn finish(self, end: StackEnd) -> RawStack {
        let omitted = (self.dropped > 0).then_some((self.inner.len(), self.dropped));
        let mut frames = self.inner;
        frames.extend(self.outer);
        RawStack { frames, omitted, end }
    }

    /// Joins the inner frames of a cut stack with frames of its outer end. At least one frame is between.
    pub(super) fn join(self, outer: Kept) -> RawStack {
        let dropped = self.dropped + self.outer.len() + outer.dropped;
        let mut frames = self.inner;
        let before = frames.len();
        let tail: Vec<_> = outer.inner.into_iter().chain(outer.outer).collect();
        let skipped = tail.len().saturating_sub(OUTERMOST);
        frames.extend(&tail[skipped..]);
        RawStack { frames, omitted: Some((before, (dropped + skipped).max(1))), end: StackEnd::Cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::CodeAddress;

    fn frame(number: u64) -> RawFrame {
        RawFrame { address: CodeAddress::Return(number), trust: Trust::Tables }
    }

    fn numbers(stack: &RawStack) -> Vec<u64> {
        stack.frames.iter().map(|frame| frame.address.value()).collect()
    }

    #[test]
    fn a_deep_stack_keeps_both_ends() {
        let mut kept = Kept::default();
        (0..1000).for_each(|number| kept.push(frame(number)));
        let stack = kept.finish(StackEnd::Root);
        assert_eq!(stack.omitted, Some((192, 1000 - 256)));
        let expected: Vec<_> = (0..192).chain(936..1000).collect();
        assert_eq!(numbers(&stack), expected);
    }

    #[test]
    fn a_stack_that_fits_is_whole() {
        let mut kept = Kept::default();
        (0..256).for_each(|number| kept.push(frame(number)));
        let stack = kept.finish(StackEnd::Root);
        assert_eq!(stack.omitted, None);
        assert_eq!(stack.frames.len(), 256);
    }

    #[test]
    fn joining_marks_the_gap_even_if_nothing_was_counted() {
        let (mut inner, mut outer) = (Kept::default(), Kept::default());
        (0..10).for_each(|number| inner.push(frame(number)));
        (500..503).for_each(|number| outer.push(frame(number)));
        let stack = inner.join(outer);
        assert_eq!(stack.omitted, Some((10, 1)));
        assert_eq!(stack.frames.len(), 13);
        assert_eq!(stack.end, StackEnd::Cut);
    }
}
