//! Whether what looks like a race is one. Pure, but for a look into the source.
//!
//! What a compiler reports is plain, and so is what no compiler makes of an atomic operation. Of a move in code that was
//! patched it is not known: an atomic load is one too. Debug information tells: the functions at that instruction are in the
//! language's own file about atomics, or the line names an atomic operation. Where there is none, it counts as atomic.
//!
//! A move that meets atomic operations on the same word is more likely one of them, so there it takes more: its line has to
//! be readable, the program's own, without a call, which may be a macro around an atomic operation, and with the
//! variable's name where the variable has one; nothing in that unit of the program may be declared atomic or volatile, nor may
//! there be an atomic load in its files if it is a load, or a store if it is one: compilers make one instruction of a plain
//! access and an atomic one that do the same in two branches, and give it the line of either.

use waylay_evidence::{Frame, Origin, base_name, origin};

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

/// What is known about the program.
pub struct Sources<'a> {
    /// A line of a file.
    pub line: &'a dyn Fn(&str, u32) -> Option<String>,
    /// Whether the unit that this code was compiled in may declare something atomic or volatile.
    pub qualifies: &'a dyn Fn(&Frame) -> bool,
    /// Files of the program's own that this code was compiled from.
    pub files: &'a dyn Fn(&Frame) -> Vec<String>,
    /// The variable, if it has a name.
    pub variable: Option<&'a str>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Sources").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// Weighs a race. `frames`: the functions at the first access and at the second.
pub fn weigh(race: &Race, frames: [&[&Frame]; 2], sources: &Sources<'_>) -> Weighed {
    if race.first.frees || race.second.frees {
        // No access survives that, atomic or not.
        return Weighed::Race;
    }
    for (atomic, other, frames) in
        [(&race.first, &race.second, frames[1]), (&race.second, &race.first, frames[0])]
    {
        if atomic.atomic && !other.plain {
            return match beside_atomics(other, frames, sources) {
                Nature::Plain => Weighed::Race,
                Nature::Atomic => Weighed::Atomic(vec![other.site.0]),
                Nature::Unknown => Weighed::Unknown(vec![other.site.0]),
            };
        }
    }
    let source = sources.line;
    let both = race.first.updates && race.second.updates && !race.first.atomic && !race.second.atomic;
    let nature = |access: &Access, frames: &[&Frame]| {
        if access.plain {
            return Nature::Plain;
        }
        match by_name(frames, source) {
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
    // What is certainly plain meets an atomic operation.
    if accesses.iter().any(|access| access.atomic) {
        return Weighed::Race;
    }
    if natures.contains(&Nature::Atomic) {
        return Weighed::Atomic(sites(Nature::Atomic));
    }
    let writes_plainly = accesses.iter().any(|access| access.plain && access.writes);
    if natures.contains(&Nature::Unknown) && !writes_plainly {
        return Weighed::Unknown(sites(Nature::Unknown));
    }
    Weighed::Race
}

/// What an access is to a word that atomic operations access, too.
fn beside_atomics(access: &Access, frames: &[&Frame], sources: &Sources<'_>) -> Nature {
    let named = by_name(frames, sources.line);
    let Some(frame) = frames.first().filter(|_| named == Nature::Plain) else { return named };
    let text = frame.file.as_deref().zip(frame.line).and_then(|(file, line)| (sources.line)(file, line));
    let own = origin(frame) == Origin::Own && frame.file.as_deref().is_some_and(|file| !is_of_system(file));
    let Some(text) = text.filter(|_| own) else { return Nature::Unknown };
    // No compiler makes an atomic operation of an instruction that reads and writes without a lock.
    let direct = !calls(&text) && sources.variable.is_none_or(|name| mentions(&text, name));
    let alone =
        || !(sources.qualifies)(frame) && !(sources.files)(frame).iter().any(|file| has_atomic(file, access));
    if direct && (access.updates || alone()) { Nature::Plain } else { Nature::Unknown }
}

/// Whether a source file has atomic operations of the same form: loads, or stores.
fn has_atomic(text: &str, access: &Access) -> bool {
    const LOADS: [&str; 5] = ["load", "read", "get", "capture", "compare"];
    const STORES: [&str; 6] = ["store", "write", "set", "clear", "capture", "compare"];
    let likely: &[&str] = if access.writes { &STORES } else { &LOADS };
    let parts = |word: &str| word.to_lowercase().split('_').any(|part| likely.contains(&part));
    text.lines().any(|line| {
        let atomic = line.to_lowercase().contains("atomic");
        // A method of `std::atomic_ref`, whose name may be elsewhere.
        words(line).any(|(word, rest)| parts(word) && (atomic || word == likely[0] && rest.starts_with('(')))
    })
}

fn is_of_system(file: &str) -> bool {
    ["/usr/", "/lib/", "/rustc/", "/opt/"].iter().any(|folder| file.starts_with(folder))
}

/// Words of a line, each with what follows it.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(is_part)?;
        let end = rest[start..].find(|letter| !is_part(letter)).map_or(rest.len(), |end| start + end);
        let word = &rest[start..end];
        rest = &rest[end..];
        Some((word, rest.trim_start()))
    })
}

/// Whether something is called in a line, or may be a macro.
fn calls(text: &str) -> bool {
    const LANGUAGE: [&str; 8] = ["if", "while", "for", "switch", "return", "sizeof", "else", "defined"];
    let is_loud = |word: &str| {
        word.chars().any(|letter| letter.is_ascii_uppercase())
            && !word.chars().any(|letter| letter.is_ascii_lowercase())
            && word.len() > 2
    };
    words(text).any(|(word, rest)| {
        rest.starts_with('(') && !LANGUAGE.contains(&word)
            || rest.starts_with('!') && !rest.starts_with("!=")
            || is_loud(word)
            || ["asm", "__asm__", "volatile", "__volatile__"].contains(&word)
    })
}

fn mentions(text: &str, variable: &str) -> bool {
    let name = variable.split(['+', '<', '(']).next().unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or_default().trim();
    // Compilers add a number to the names of variables of functions.
    let name = name.split('.').next().unwrap_or_default();
    words(text).any(|(word, _)| word == name)
}

fn by_name(frames: &[&Frame], source: &dyn Fn(&str, u32) -> Option<String>) -> Nature {
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
    if names_one || is_told_above(file, line, source) { Nature::Atomic } else { Nature::Plain }
}

/// Whether OpenMP's directive stands above a line: `#pragma omp atomic read`, or one whose block may reach as far.
fn is_told_above(file: &str, line: u32, source: &dyn Fn(&str, u32) -> Option<String>) -> bool {
    /// Lines that such a block may have: the directive, braces, two statements.
    const BLOCK: u32 = 5;
    let mut next_to_it = true;
    (line.saturating_sub(BLOCK).max(1)..line).rev().any(|above| {
        let text = source(file, above).unwrap_or_default();
        let text = text.trim();
        let pragma = text.starts_with('#') && text.contains("pragma") && text.contains("atomic");
        let block = text.contains("capture") || text.contains("compare");
        let told = pragma && (next_to_it || block);
        next_to_it &= text.is_empty() || text == "{" || text.ends_with('\\');
        told
    })
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
        let (site, frees, atomic, locks) = (Site(site), false, false, Vec::new());
        Access { code, site, thread, bytes, writes, plain, updates, frees, atomic, serial, locks }
    }

    fn race(first: Access, second: Access) -> Race {
        Race { address: 64, first, second, block: None }
    }

    fn source(_: &str, line: u32) -> Option<String> {
        let text = match line {
            7 => "    atomic_store_explicit(&flag, 1, memory_order_release);",
            8 => "    if (total > 3) total += 2; // done",
            12 => "    beside = 3;",
            9 => "    if (look_at(&total) > 3) return;",
            10 => "    if (LOOK(total) > 3) return;",
            20 => "    #pragma omp atomic read",
            21 | 22 => "    seen = total;",
            23 => "    #pragma omp atomic capture",
            24 => "    {",
            25 | 26 => "        total += 2;",
            _ => return None,
        };
        Some(text.to_owned())
    }

    const UPDATES: &str = "    __atomic_fetch_add(&total, 1, __ATOMIC_SEQ_CST);";
    const LOADS: &str = "#pragma omp atomic\n    total++;\n#pragma omp atomic read\n    beside = total;";

    fn weigh_as(race: &Race, frames: [&[&Frame]; 2], variable: Option<&str>, qualifies: bool) -> Weighed {
        let files =
            |_: &Frame| vec![if variable == Some("beside") { LOADS.to_owned() } else { UPDATES.to_owned() }];
        weigh(race, frames, &Sources { line: &source, qualifies: &|_| qualifies, files: &files, variable })
    }

    fn weigh_it(race: &Race, frames: [&[&Frame]; 2]) -> Weighed {
        weigh_as(race, frames, None, false)
    }

    #[test]
    fn beside_atomics_a_move_is_plain_only_where_all_says_so() {
        let atomic = Access { atomic: true, updates: true, ..access(1, true, false, false) };
        let met = |line: u32, variable, qualifies| {
            let (here, there) = (frame("f", Some(("a.c", 7))), frame("g", Some(("a.c", line))));
            let (one, two) = (access(2, false, false, false), atomic.clone());
            let turned =
                weigh_as(&race(one.clone(), two.clone()), [&[&there], &[&here]], variable, qualifies);
            let weighed = weigh_as(&race(two, one), [&[&here], &[&there]], variable, qualifies);
            assert_eq!(turned, weighed);
            weighed
        };
        assert_eq!(met(8, Some("bank::total+4"), false), Weighed::Race);
        assert_eq!(met(8, None, false), Weighed::Race, "memory without a name");
        assert_eq!(met(8, Some("sum"), false), Weighed::Unknown(vec![2]), "a line about something else");
        assert_eq!(met(8, Some("total"), true), Weighed::Unknown(vec![2]), "it may be declared atomic");
        assert_eq!(met(12, Some("beside"), false), Weighed::Unknown(vec![2]), "one of two branches");
        assert_eq!(met(9, Some("total"), false), Weighed::Unknown(vec![2]), "a macro perhaps");
        assert_eq!(met(10, Some("total"), false), Weighed::Unknown(vec![2]), "a macro");
        assert_eq!(met(11, Some("total"), false), Weighed::Unknown(vec![2]), "no source");
        assert_eq!(met(7, Some("total"), false), Weighed::Atomic(vec![2]));
        assert_eq!(met(21, Some("total"), false), Weighed::Atomic(vec![2]), "the line above says so");
        assert_eq!(met(22, Some("total"), false), Weighed::Race, "of that line alone");
        assert_eq!([25, 26].map(|line| met(line, None, false)), [(); 2].map(|()| Weighed::Atomic(vec![2])));
        let (here, there) = (frame("f", Some(("a.c", 7))), frame("g", None));
        let plain = race(atomic, access(2, false, true, false));
        assert_eq!(weigh_it(&plain, [&[&here], &[&there]]), Weighed::Race, "a compiler says so");
    }

    #[test]
    fn a_compiler_knows() {
        let race = race(access(1, false, true, false), access(2, true, true, false));
        let named = frame("core::sync::atomic::atomic_load", None);
        assert_eq!(weigh_it(&race, [&[&named], &[]]), Weighed::Race, "what is plain needs no name");
    }

    #[test]
    fn debug_information_tells_moves_apart() {
        let race = race(access(1, false, false, false), access(2, true, false, false));
        let (plain, line_7) = (frame("f", Some(("a.c", 60))), frame("f", Some(("a.c", 7))));
        let inlined = frame("load", Some(("/rust/library/core/src/sync/atomic.rs", 900)));
        let nameless = frame("f", None);
        let weigh = |one, other| weigh_it(&race, [&[one], &[other]]);
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
        assert_eq!(weigh_it(&race, [&[&named], &[&named]]), Weighed::Race);
    }

    #[test]
    fn the_form_of_an_instruction_tells_too() {
        let nameless = frame("f", None);
        let weigh = |one, other| weigh_it(&race(one, other), [&[&nameless], &[&nameless]]);
        let (update, load) = (access(1, true, false, true), access(2, false, false, false));
        assert_eq!(weigh(update.clone(), update.clone()), Weighed::Race, "one of them is lost");
        assert_eq!(weigh(update, load.clone()), Weighed::Unknown(vec![1, 2]), "a counter with one writer");
        assert_eq!(weigh(access(1, true, true, false), load.clone()), Weighed::Race);
        assert_eq!(weigh(access(1, false, true, false), load), Weighed::Unknown(vec![2]));
    }
}
