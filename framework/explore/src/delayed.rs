//! Stores that were still in a store buffer when another thread read: what a failure under `--memory tso` needs, in words.

use serde::Serialize;
use waylay_control_protocol::DelayedStore;
use waylay_evidence::{CodeAddress, MemoryMap, Origin, Symbolizer, origin};

use crate::race;
use crate::variable::Variables;

/// Sentences about one failure: more would hide the one that matters.
const MOST: usize = 4;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DelayedText {
    /// Who stored.
    pub stored_by: u64,
    /// What.
    pub object: String,
    /// Function and line of the store.
    pub store: String,
    /// Who read.
    pub read_by: u64,
    /// Function and line of the read.
    pub read: String,
}

impl DelayedText {
    /// As people read it.
    pub fn sentence(&self) -> String {
        let DelayedText { stored_by, object, store, read_by, read } = self;
        format!(
            "thread {stored_by}'s store to {object} in {store} was still in its store buffer when thread {read_by} read it in \
             {read}; a fence behind the store makes it visible first"
        )
    }
}

/// What a run showed, each pair of places once, in the order of the run. `map` and `variables` are of its process.
pub(crate) fn describe(
    stores: &[DelayedStore],
    map: &MemoryMap,
    variables: &mut Variables,
    names: &mut Symbolizer,
) -> Vec<DelayedText> {
    let mut all: Vec<DelayedText> = Vec::new();
    for store in stores {
        // The code is an instruction, or one byte behind the call of a hook; both lie in the line that is meant.
        let mut place = |code: u64| {
            let frames = names.resolve(map, &[CodeAddress::Return(code + 1)]);
            // Of functions that were put into each other, the program's own rather than a library's.
            let own = frames.iter().find(|frame| origin(frame) == Origin::Own).or(frames.first());
            own.map_or_else(|| format!("{code:#x}"), race::line)
        };
        let (stored, read) = (place(store.store), place(store.read));
        let object = variables
            .at(store.address)
            .map_or_else(|| format!("{:#x}", store.address), |name| format!("`{name}`"));
        let text =
            DelayedText { stored_by: store.stored_by, object, store: stored, read_by: store.read_by, read };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.split_off(all.len().saturating_sub(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_both_places() {
        let text = DelayedText {
            stored_by: 1,
            object: "`flag0`".to_owned(),
            store: "enter (a.c:12)".to_owned(),
            read_by: 2,
            read: "enter (a.c:21)".to_owned(),
        };
        let expected = "thread 1's store to `flag0` in enter (a.c:12) was still in its store buffer when thread 2 read it in \
                        enter (a.c:21)";
        assert!(text.sentence().starts_with(expected), "{}", text.sentence());
    }
}
