//! Whether what looks like a race is one. Pure, but for a look into the source.
//!
//! What a compiler reports is plain, and so is what no compiler makes of an atomic operation. Of a move in code that was
//! patched it is not known: an atomic load is one too. Debug information tells: the functions at that instruction are in the
//! language's own file about atomics, or the line names an atomic operation. Where there is none, it counts as atomic.

use waylay_evidence::{Frame, base_name};

use crate::race::{Access, Race};

/// What an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Plain,
    Atomic,
    Unknown,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weighed {
    /// It is a race.
    Race,
    /// It is none: the accesses at these sites are atomic.
    Atomic(Vec<u64>),
    /// It cannot be told; the accesses at these sites count as atomic.
    Unknown(Vec<u64>),
}

/// Weighs a race. `frames`: the functions at the first access and at the second; `source` gives a line of a file.
pub fn weigh(race: &Race, frames: [&[&Frame]; 2], source: impl Fn(&str, u32) -> Option<String>) -> Weighed {
    if race.first.frees || race.second.frees {
        // No access survives that, atomic or not.
        return Weighed::Race;
    }
    let both = race.first.updates && race.second.updates;
    let nature = |access: &Access, frames: &[&Frame]| {
        if access.plain {
            return Nature::Plain;
        }
        match by_name(frames, &source) {
            // Two that read and write without a lock lose what the other wrote, whatever they are called.
            Nature::Unknown if both => Nature::Plain,
            nature => nature,
        }
    };
    let natures = [nature(&race.first, frames[0]), nature(&race.second, frames[1])];
    let accesses = [&race.first, &race.second];
    let sites = |wanted: Nature| {
        let of = accesses.iter().zip(natures).filter(|(_, nature)| *nature == wanted);
        of.map(|(access, _)| access.site.0).collect::<Vec<u64>>()
    };
    if natures.contains(&Nature::Atomic) {
        return Weighed::Atomic(sites(Nature::Atomic));
    }
    let writes_plainly = accesses.iter().any(|access| access.plain && access.writes);
    if natures.contains(&Nature::Unknown) && !writes_plainly {
        return Weighed::Unknown(sites(Nature::Unknown));
    }
    Weighed::Race
}

fn by_name(frames: &[&Frame], source: &impl Fn(&str, u32) -> Option<String>) -> Nature {
    if frames.iter().any(|frame| is_about_atomics(frame)) {
        return Nature::Atomic;
    }
    let Some((file, line)) = frames.first().and_then(|frame| frame.file.as_deref().zip(frame.line)) else {
        return Nature::Unknown;
    };
    let names_one = source(file, line).is_some_and(|text| {
        let text = text.to_lowercase();
        text.contains("atomic") || text.contains("__sync_")
    });
    if names_one { Nature::Atomic } else { Nature::Plain }
}

/// `core::sync::atomic`, `std::atomic`, `<bits/atomic_base.h>` and the like.
fn is_about_atomics(frame: &Frame) -> bool {
    let file = frame.file.as_deref().map(base_name).unwrap_or_default();
    let function = frame.function.as_deref().unwrap_or_default().to_lowercase();
    file.starts_with("atomic") || function.contains("atomic")
}

#[cfg(test)]
mod tests {
    use waylay_control_protocol::Site;
    use waylay_evidence::Trust;

    use super::*;

    fn frame(function: &str, place: Option<(&str, u32)>) -> Frame {
        Frame {
            function: Some(function.to_owned()),
            function_offset: None,
            module: None,
            offset: 0,
            address: 0,
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
            inlined: false,
            trust: Trust::Registers,
        }
    }

    fn access(site: u64, writes: bool, plain: bool, updates: bool) -> Access {
        let (code, thread, bytes, serial) = (site, site, 4, site);
        let (site, frees, locks) = (Site(site), false, Vec::new());
        Access { code, site, thread, bytes, writes, plain, updates, frees, serial, locks }
    }

    fn race(first: Access, second: Access) -> Race {
        Race { address: 64, first, second, block: None }
    }

    fn source(_: &str, line: u32) -> Option<String> {
        (line == 7).then(|| "    atomic_store_explicit(&flag, 1, memory_order_release);".to_owned())
    }

    #[test]
    fn a_compiler_knows() {
        let race = race(access(1, false, true, false), access(2, true, true, false));
        let named = frame("core::sync::atomic::atomic_load", None);
        assert_eq!(weigh(&race, [&[&named], &[]], source), Weighed::Race, "what is plain needs no name");
    }

    #[test]
    fn debug_information_tells_moves_apart() {
        let race = race(access(1, false, false, false), access(2, true, false, false));
        let (plain, line_7) = (frame("f", Some(("a.c", 20))), frame("f", Some(("a.c", 7))));
        let inlined = frame("load", Some(("/rust/library/core/src/sync/atomic.rs", 900)));
        let nameless = frame("f", None);
        let weigh = |one, other| weigh(&race, [&[one], &[other]], source);
        assert_eq!(weigh(&plain, &plain), Weighed::Race);
        assert_eq!(weigh(&plain, &line_7), Weighed::Atomic(vec![2]));
        assert_eq!(weigh(&inlined, &line_7), Weighed::Atomic(vec![1, 2]));
        assert_eq!(weigh(&nameless, &plain), Weighed::Unknown(vec![1]));
        assert_eq!(weigh(&nameless, &nameless), Weighed::Unknown(vec![1, 2]));
    }

    #[test]
    fn a_free_races_with_atomics_too() {
        let named = frame("core::sync::atomic::atomic_load", None);
        let free = Access { frees: true, ..access(1, true, true, false) };
        let race = race(free, access(2, false, false, false));
        assert_eq!(weigh(&race, [&[&named], &[&named]], source), Weighed::Race);
    }

    #[test]
    fn the_form_of_an_instruction_tells_too() {
        let nameless = frame("f", None);
        let weigh = |one, other| weigh(&race(one, other), [&[&nameless], &[&nameless]], source);
        let (update, load) = (access(1, true, false, true), access(2, false, false, false));
        assert_eq!(weigh(update.clone(), update.clone()), Weighed::Race, "one of them is lost");
        assert_eq!(weigh(update, load.clone()), Weighed::Unknown(vec![1, 2]), "a counter with one writer");
        assert_eq!(weigh(access(1, true, true, false), load.clone()), Weighed::Race);
        assert_eq!(weigh(access(1, false, true, false), load), Weighed::Unknown(vec![2]));
    }
}
