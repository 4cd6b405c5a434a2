//! How runs are made, whatever the strategy: what a person can say about it.
//!
//! One type for TOML, for command lines, for stored failures and for the library. Keys, flags and fields have the same names. The
//! numbers that cross the shared memory are in [`settings`](crate::settings) and [`instrumentation`](crate::instrumentation), and
//! are made of this here.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::instrumentation::{Instrumentation, Level, cache_folder};
use crate::region::{RegionError, RegionMap};
use crate::settings::{ClockSource, Memory, RandomSource, Settings, Switching, Timeouts};

/// How runs are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunConditions {
    /// Kernel threads hand a baton on; otherwise fibers.
    pub baton: bool,
    /// A run is stopped after so many steps.
    pub max_steps: u64,
    /// Timeouts and sleeps end only when nothing else can run, not whenever the strategy likes.
    pub idle_timeouts: bool,
    /// The program sees the real clocks.
    pub real_time: bool,
    /// The program's random bytes come from the kernel.
    pub real_random: bool,
    /// Calls that allocate, free, write or use files are steps too.
    #[serde(default)]
    pub calls: bool,
    /// Freed memory is kept back, so that its misuse shows.
    #[serde(default)]
    pub guard: bool,
    /// When others see a store.
    #[serde(default, skip_serializing_if = "Memory::is_sequential")]
    pub memory: Memory,
    /// What is a step, from library calls only to every access.
    pub level: Level,
    /// Unmodified code is patched.
    pub patch: bool,
    /// Libraries of the system whose accesses are patched as those of the program are.
    #[serde(default)]
    pub memory_modules: Vec<String>,
    /// Accesses that nothing orders end the run and are failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub races: bool,
}

impl RunConditions {
    /// Those of a whole program, unless it is said otherwise.
    pub fn of_program(level: Level) -> RunConditions {
        RunConditions {
            baton: false,
            max_steps: 10_000_000,
            idle_timeouts: false,
            real_time: false,
            real_random: false,
            calls: true,
            guard: true,
            memory: Memory::Sc,
            level,
            patch: true,
            memory_modules: Vec::new(),
            races: false,
        }
    }

    /// Those of a plugin test: its host does not control calls, and a million steps are far beyond any schedule of a test that
    /// makes progress, and reached within a second.
    pub fn of_test(level: Level) -> RunConditions {
        RunConditions { max_steps: 1_000_000, calls: false, guard: false, ..RunConditions::of_program(level) }
    }

    /// Takes over what is asked of patching.
    pub fn set_patches(&mut self, patches: &[Patch]) {
        self.patch = !patches.contains(&Patch::None);
        self.memory_modules = patches.iter().filter_map(Patch::module).map(str::to_owned).collect();
    }

    /// What [`set_patches`](Self::set_patches) took over.
    pub fn patches(&self) -> Vec<Patch> {
        let none = (!self.patch).then_some(Patch::None);
        none.into_iter().chain(self.memory_modules.iter().cloned().map(Patch::Memory)).collect()
    }

    /// Whether stores are to wait although some of them are not seen: those would overtake the ones that wait.
    pub fn misses_stores(&self) -> bool {
        self.memory == Memory::Tso && !(self.level.sees_accesses() && self.patch)
    }

    /// The library's settings for one run.
    pub fn settings(&self, seed: u64, run: u64) -> Settings {
        let switching = if self.baton { Switching::Baton } else { Switching::Carrier };
        let mut settings = Settings::new(switching, seed, run);
        settings.max_steps = self.max_steps;
        settings.timeouts = if self.idle_timeouts { Timeouts::Idle } else { Timeouts::Choice } as u32;
        settings.clock = if self.real_time { ClockSource::Real } else { ClockSource::Virtual } as u32;
        settings.random = if self.real_random { RandomSource::Real } else { RandomSource::Seeded } as u32;
        settings.calls = u32::from(self.calls);
        settings.guard = u32::from(self.guard);
        settings.races = u32::from(self.races);
        settings.memory = self.memory as u32;
        settings
    }

    /// A region for processes that make such runs: programs, or hosts of plugin tests, which themselves are not patched.
    pub fn region(&self, hosts: bool) -> Result<RegionMap, RegionError> {
        let mut region = RegionMap::create()?;
        let mut wanted = Instrumentation::new(self.level, self.patch);
        if !wanted.set_memory_modules(&self.memory_modules) {
            return Err(RegionError::TooLong(self.memory_modules.iter().map(String::len).sum()));
        }
        // An order that is missed would be taken for a race, and a store that is would overtake others.
        wanted.all = u32::from(self.races || self.memory == Memory::Tso);
        wanted.delays = u32::from(self.memory == Memory::Tso);
        wanted.host = u32::from(hosts);
        if let Some(folder) = cache_folder() {
            wanted.set_cache(&folder);
        }
        region.set_instrumentation(wanted);
        Ok(region)
    }
}

/// What is asked of patching, beside the program and the libraries that it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch {
    /// Nothing is patched: what a compiler reports counts.
    None,
    /// All accesses of a library are patched, too.
    Memory(String),
}

impl Patch {
    fn module(&self) -> Option<&str> {
        match self {
            Patch::Memory(module) => Some(module),
            Patch::None => None,
        }
    }
}

impl std::fmt::Display for Patch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Patch::None => f.write_str("none"),
            Patch::Memory(module) => write!(f, "memory={module}"),
        }
    }
}

impl FromStr for Patch {
    type Err = String;

    fn from_str(text: &str) -> Result<Patch, String> {
        match text.split_once('=') {
            Some(("memory", module)) if !module.is_empty() => Ok(Patch::Memory(module.to_owned())),
            _ if text == "none" => Ok(Patch::None),
            _ => Err("say `none` or `memory=LIBRARY`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_patching_comes_back() {
        let mut conditions = RunConditions::of_program(Level::Auto);
        assert!(conditions.patch && conditions.patches().is_empty());
        let asked = [Patch::None, Patch::Memory("libz.so.1".to_owned())];
        conditions.set_patches(&asked);
        assert!(!conditions.patch);
        assert_eq!(conditions.patches(), asked);
        for patch in asked {
            assert_eq!(patch.to_string().parse(), Ok(patch));
        }
        assert!("memory=".parse::<Patch>().is_err() && "all".parse::<Patch>().is_err());
    }

    #[test]
    fn stores_wait_only_where_all_of_them_are_seen() {
        let tso = RunConditions { memory: Memory::Tso, ..RunConditions::of_test(Level::Auto) };
        assert!(!tso.misses_stores());
        assert!(RunConditions { patch: false, ..tso.clone() }.misses_stores());
        assert!(RunConditions { level: Level::Atomics, ..tso.clone() }.misses_stores());
        assert!(!RunConditions { memory: Memory::Sc, level: Level::Sync, ..tso }.misses_stores());
    }

    #[test]
    fn each_condition_reaches_the_library() {
        let plain = RunConditions::of_test(Level::Sync).settings(1, 2);
        let other = RunConditions {
            baton: true,
            max_steps: 7,
            idle_timeouts: true,
            real_time: true,
            real_random: true,
            calls: true,
            guard: true,
            memory: Memory::Tso,
            races: true,
            ..RunConditions::of_test(Level::Sync)
        }
        .settings(1, 2);
        assert_eq!((other.switching, other.timeouts), (Switching::Baton as u32, Timeouts::Idle as u32));
        assert_eq!((other.clock, other.random), (ClockSource::Real as u32, RandomSource::Real as u32));
        assert_eq!((other.max_steps, other.calls, other.guard, other.races, other.memory), (7, 1, 1, 1, 1));
        assert_eq!(
            (plain.max_steps, plain.calls, plain.guard, plain.races, plain.memory),
            (1_000_000, 0, 0, 0, 0)
        );
    }
}
