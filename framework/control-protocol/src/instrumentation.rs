//! Which instructions of a program become steps: settled before the process starts, and for its whole life.
//!
//! Calls to library functions are steps at every level. What compilers were asked to report (`-fsanitize=thread`), and
//! what is patched in code that nobody compiled for it, is a step from a certain [`Level`] on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes for a list of module names, and for the folder of the cache.
const TEXT: usize = 2048;
/// Code sites that can be chosen, or reported as conflicting.
pub const SITES: usize = 1 << 16;
/// Plain accesses of a run that are looked at, to learn which are worth a step: some tenths of a second.
pub const MOST_ACCESSES: u64 = 2_000_000;
/// Bytes of memory of a run in which races are looked for. Words that are touched once need up to 20 times as much to be
/// remembered (measured: 89 MiB where 4 are touched, 202 MiB where 12 are). With more, [`MOST_ACCESSES`] would be reached first.
pub const RACING_MEMORY: u64 = 12 << 20;
/// Steps that the plain accesses at one place in the code make in a run: a hot race must not fill the whole run.
pub const MOST_STEPS: u32 = 10_000;
/// Calls of a run that synchronise nothing and are steps all the same: a program that makes more is busy with other things, and
/// must not reach the step limit, which would mean that it is not judged, by working.
pub const MOST_CALLS: u32 = 1_000_000;

/// The first runs are all looked at, to learn which accesses are worth a step.
pub const FIRST_LOOKS: u64 = 16;
/// Later, one run in so many is, up to a number of runs each: looking makes a run some times slower, by hundreds where runs
/// are restored and one that is looked at is not. What is new gets rarer, and runs come faster than it does.
const LATER_LOOKS: [(u64, u64); 3] = [(1 << 10, 16), (1 << 14, 64), (u64::MAX, 256)];

/// Whether it is looked which plain accesses of this run conflict, unless all runs are looked at.
pub fn is_looked_at(run: u64) -> bool {
    let every = LATER_LOOKS.iter().find(|&&(until, _)| run < until).map_or(1, |&(_, every)| every);
    run < FIRST_LOOKS || run.is_multiple_of(every)
}

/// What is a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum Level {
    /// Calls to library functions only.
    Sync = 0,
    /// Atomic operations and volatile accesses too.
    #[default]
    Atomics = 1,
    /// Every access to memory that may be shared.
    Memory = 2,
    /// As [`Level::Memory`], for the program and its own libraries; steps are the accesses that runs have shown to
    /// conflict in an order that nothing settles.
    Auto = 3,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 4] = [Level::Sync, Level::Atomics, Level::Memory, Level::Auto];

    /// The level with this code.
    pub fn from_code(code: u32) -> Option<Level> {
        Level::ALL.into_iter().find(|level| *level as u32 == code)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Sync => "sync",
            Level::Atomics => "atomics",
            Level::Memory => "memory",
            Level::Auto => "auto",
        }
    }

    /// Whether plain accesses can be steps.
    pub fn sees_accesses(self) -> bool {
        self >= Level::Memory
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Level, String> {
        Level::ALL
            .into_iter()
            .find(|level| level.name() == text)
            .ok_or_else(|| format!("`{text}` is no level: sync, atomics, memory or auto"))
    }
}

/// What the driver wants of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    pub(crate) level: u32,
    /// 1: the instructions of unmodified modules are patched; 0: only what compilers report counts.
    pub patch: u32,
    /// 1: calls by which compiled code reports accesses stay in it at levels that do not look at them; each looks at the
    /// level then. For measuring.
    pub keep_reports: u32,
    /// 1: no access of a module whose accesses are patched may be missed, whatever that costs.
    pub all: u32,
    /// 1: stores may wait, so that calls out of modules whose accesses are patched are noticed.
    pub delays: u32,
    /// 1: the program is a host of ours, which is not patched: what it loads is the user's.
    pub host: u32,
    modules_length: u32,
    cache_length: u32,
    modules: [u8; TEXT],
    cache: [u8; TEXT],
}

impl Default for Instrumentation {
    /// Atomics of instrumented code, nothing patched: what a region of zeroes would not say.
    fn default() -> Instrumentation {
        Instrumentation {
            level: Level::Atomics as u32,
            patch: 0,
            keep_reports: 0,
            all: 0,
            delays: 0,
            host: 0,
            modules_length: 0,
            cache_length: 0,
            modules: [0; TEXT],
            cache: [0; TEXT],
        }
    }
}

impl Instrumentation {
    /// A level, and whether unmodified modules are patched.
    pub fn new(level: Level, patch: bool) -> Instrumentation {
        let mut this = Instrumentation { patch: u32::from(patch), ..Instrumentation::default() };
        this.level = level as u32;
        this
    }

    /// What is a step.
    pub fn level(&self) -> Level {
        Level::from_code(self.level).unwrap_or_default()
    }

    /// Names modules, beside the program itself, whose every access is patched at [`Level::Memory`]; false when they
    /// do not fit.
    pub fn set_memory_modules(&mut self, names: &[String]) -> bool {
        write(&mut self.modules, &mut self.modules_length, names.join("\n").as_bytes())
    }

    /// The modules named.
    pub fn memory_modules(&self) -> impl Iterator<Item = &str> {
        read(&self.modules, self.modules_length).split('\n').filter(|name| !name.is_empty())
    }

    /// Where analyses of modules are kept between processes; false when the path does not fit.
    pub fn set_cache(&mut self, folder: &Path) -> bool {
        let text = folder.to_str().unwrap_or("");
        !text.is_empty() && write(&mut self.cache, &mut self.cache_length, text.as_bytes())
    }

    /// The folder for analyses, if there is one.
    pub fn cache(&self) -> Option<PathBuf> {
        Some(read(&self.cache, self.cache_length)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }
}

fn write(to: &mut [u8; TEXT], length: &mut u32, bytes: &[u8]) -> bool {
    let Some(room) = to.get_mut(..bytes.len()) else { return false };
    room.copy_from_slice(bytes);
    *length = bytes.len() as u32;
    true
}

fn read(from: &[u8; TEXT], length: u32) -> &str {
    std::str::from_utf8(&from[..(length as usize).min(TEXT)]).unwrap_or("")
}

/// A place in code that is the same in every process: which module, and where in it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u64);

impl Site {
    /// The place `offset` bytes into the module with this file name (without folders).
    pub fn new(module: &str, offset: u32) -> Site {
        // FNV-1a: some tens of modules in a process do not collide in 32 bits.
        let hash = module
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Site(u64::from(hash) << 32 | u64::from(offset))
    }

    /// Set in numbers of kinds, and clear in places of code: those are in modules of less than half a gigabyte.
    const KIND: u64 = 1 << 31;
    /// Set in places of code that call a function which copies.
    const COPY: u64 = 1 << 30;
    /// Set in places of code that wait for another thread.
    const WAIT: u64 = 1 << 29;
    /// Both set in places of code that access what is only handed over. Whether such a place copies is not said.
    const HANDED: u64 = Site::COPY | Site::WAIT;
    /// Set in kinds of such accesses.
    const HANDED_KIND: u64 = Site::COPY;

    /// Stands in lists of sites for a kind of accesses at one of them: to which memory they are. A list that has any means only
    /// accesses of these kinds.
    pub fn of_kind(number: u64) -> Site {
        Site(number & !Site::HANDED_KIND | Site::KIND)
    }

    /// Whether this is a kind of accesses, and no place.
    pub fn is_kind(self) -> bool {
        self.0 & Site::KIND != 0
    }

    /// The same place, which calls a function of the C library that reads or writes memory for it.
    pub fn as_copy(self) -> Site {
        Site(self.0 | Site::COPY)
    }

    /// Whether this place calls such a function.
    pub fn is_copy(self) -> bool {
        self.is_place() && self.0 & Site::COPY != 0
    }

    /// Stands in lists of sites for a place that waits in a loop for what it looks at: that is no step by being in the list, but
    /// hands over what is behind it. What a list has before the last of these was learned without it, and does not count.
    pub fn as_wait(self) -> Site {
        Site(self.0 | Site::WAIT)
    }

    /// Whether this stands for a place that waits.
    pub fn is_wait(self) -> bool {
        !self.is_kind() && self.0 & Site::HANDED == Site::WAIT
    }

    /// Stands in lists of sites for accesses that meet others only in an order which a hand-over happened to give: these are
    /// steps in runs with [`HANDED_OVER`](crate::settings::HANDED_OVER), and in no other.
    pub fn as_handed(self) -> Site {
        Site(self.0 | if self.is_kind() { Site::HANDED_KIND } else { Site::HANDED })
    }

    /// Whether this stands for such accesses. Kinds of lists without any such place may have been written before there were any:
    /// [`steps_of`](Site::steps_of) reads a whole list.
    pub fn is_handed(self) -> bool {
        let mark = if self.is_kind() { Site::HANDED_KIND } else { Site::HANDED };
        self.0 & mark == mark
    }

    /// The sites of a list whose accesses are steps, as places and kinds, in a run with or without accesses to what is handed
    /// over.
    pub fn steps_of(list: &[Site], handed: bool) -> impl Iterator<Item = Site> + Clone + '_ {
        let list = Site::in_force(list);
        let marked = list.iter().any(|site| !site.is_kind() && site.is_handed());
        let counts = move |site: &&Site| handed || !marked || !site.is_handed();
        list.iter().filter(counts).map(|&site| match site.is_kind() {
            true => Site(site.0 & !Site::HANDED_KIND),
            false if site.is_handed() => site.plain().as_copy(),
            false => site,
        })
    }

    /// Whether this is a place whose accesses are steps.
    pub fn is_place(self) -> bool {
        !self.is_kind() && self.0 & Site::WAIT == 0
    }

    /// The place in the code, without what else is said of it.
    pub fn plain(self) -> Site {
        if self.is_kind() { self } else { Site(self.0 & !(Site::COPY | Site::WAIT)) }
    }

    /// The sites of a list that count: places and kinds behind the last place that waits.
    pub fn in_force(list: &[Site]) -> &[Site] {
        let begin = list.iter().rposition(|site| site.is_wait()).map_or(0, |last| last + 1);
        &list[begin..]
    }
}

/// Where analyses of modules are kept between processes: in the user's folder for such things.
pub fn cache_folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || Some(of("HOME")?.join(".cache"));
    let folder = of("XDG_CACHE_HOME").or_else(|| of("LOCALAPPDATA")).or_else(home)?.join("waylay");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders_come_back() {
        let mut wanted = Instrumentation::new(Level::Memory, true);
        assert!(wanted.set_memory_modules(&["liba.so".to_owned(), "libb.so".to_owned()]));
        assert!(wanted.set_cache(Path::new("/some/where")));
        assert_eq!(wanted.level(), Level::Memory);
        assert_eq!(wanted.memory_modules().collect::<Vec<_>>(), ["liba.so", "libb.so"]);
        assert_eq!(wanted.cache(), Some(PathBuf::from("/some/where")));
        assert!(!wanted.set_memory_modules(&["x".repeat(TEXT + 1)]));
        assert_eq!(wanted.memory_modules().count(), 2);
    }

    #[test]
    fn levels_are_known_by_name_and_code() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            assert_eq!(Level::from_code(level as u32), Some(level));
        }
        assert!("all".parse::<Level>().is_err());
    }

    #[test]
    fn a_site_tells_modules_apart() {
        assert_ne!(Site::new("a", 1), Site::new("b", 1));
        assert_eq!(Site::new("liba.so", 7).0 as u32, 7);
        let (place, kind) = (Site::new("a", 7), Site::of_kind(u64::MAX));
        assert!(place.is_place() && place.as_copy().is_copy() && !place.as_copy().is_wait());
        assert!(place.as_wait().is_wait() && !place.as_wait().is_place());
        assert!(kind.is_kind() && !kind.is_copy() && !kind.is_wait() && !kind.is_place());
        assert_eq!([place.as_copy().plain(), place.as_wait().plain(), kind.plain()], [place, place, kind]);
        assert_eq!(Site::in_force(&[place, place.as_wait(), kind]), [kind]);
        assert_eq!(Site::in_force(&[place, kind]), [place, kind]);
    }

    #[test]
    fn what_is_handed_over_is_a_step_in_runs_for_that_only() {
        let (place, other, kind) = (Site::new("a", 7), Site::new("a", 9), Site::of_kind(u64::MAX));
        let handed = other.as_handed();
        assert!(handed.is_handed() && !handed.is_wait() && !handed.is_copy() && !handed.is_place());
        assert!(!place.is_handed() && !place.as_wait().is_handed() && !place.as_copy().is_handed());
        assert!(!kind.is_handed() && kind.as_handed().is_handed() && kind.as_handed().is_kind());
        assert_eq!(handed.plain(), other);
        let list = [place, handed, kind.as_handed()];
        assert_eq!(Site::in_force(&list), list);
        assert_eq!(Site::steps_of(&list, false).collect::<Vec<_>>(), [place]);
        assert_eq!(Site::steps_of(&list, true).collect::<Vec<_>>(), [place, other.as_copy(), kind]);
        let before = [place, kind.as_handed()];
        assert_eq!(Site::steps_of(&before, false).collect::<Vec<_>>(), [place, kind], "an older list");
    }
}
