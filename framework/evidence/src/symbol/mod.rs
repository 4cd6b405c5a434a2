//! Turning addresses into functions, files and lines.
//!
//! A [`Symbolizer`] is kept for the length of a campaign: files are parsed once, and an address seen before
//! costs a look into a table. Names come from debug information if there is any (in the file, or in the
//! separate file that its build id names, or in a PDB file), else from the symbol tables.

mod demangle;
mod name;
mod names;
mod pdb;
mod qualified;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::memory_map::MemoryMap;
use crate::module::Module;
use crate::module::loaded::{LoadedModules, Located, ModuleCache, ModuleId};
use crate::origin::base_name;
use crate::snapshot::{ProcessSnapshot, ThreadSnapshot};
use crate::stack::{Frame, Omitted, ThreadStack, Trust};
use crate::unwind::{self, RawStack, RuleCache};

pub(crate) use demangle::strip_clone;
use name::Name;
use names::Names;

/// A name as the programmer wrote it, from what the linker sees.
#[must_use]
pub fn demangled(raw: &str) -> String {
    demangle::demangle(raw)
}

/// An address of code and how it was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeAddress {
    /// The instruction that was executing.
    Instruction(u64),
    /// The instruction to return to; the call is before it.
    Return(u64),
}

impl CodeAddress {
    /// The address itself.
    #[must_use]
    pub fn value(self) -> u64 {
        match self {
            CodeAddress::Instruction(address) | CodeAddress::Return(address) => address,
        }
    }

    /// An address inside the instruction that is meant: a call may be the last instruction of its function.
    #[must_use]
    pub fn for_lookup(self) -> u64 {
        match self {
            CodeAddress::Instruction(address) => address,
            CodeAddress::Return(address) => address.saturating_sub(1),
        }
    }
}

/// Addresses of a module, as its file counts them, in words: the function and the line, as far as they are known.
pub fn places_in(file: &Path, addresses: &[u64]) -> Vec<String> {
    let module = std::fs::read(file).ok().and_then(|bytes| Module::parse(bytes.into()));
    let names = module.map(|module| Names::of(&module, &file.to_string_lossy()));
    let place = |&address: &u64| {
        let found = names.as_ref().map(|names| names.find(address)).unwrap_or_default();
        // Inlined functions come before the one that holds them, and have the line.
        let first = found.first().filter(|name| name.function.is_some());
        match first.map(|name| (name.function.as_deref(), name.file.as_deref(), name.line)) {
            Some((Some(function), Some(file), Some(line))) => {
                format!("{function} ({}:{line})", base_name(file))
            }
            Some((Some(function), _, _)) => function.to_owned(),
            _ => format!("{}+{address:#x}", base_name(&file.to_string_lossy())),
        }
    };
    addresses.iter().map(place).collect()
}

/// Whether the unit of code at an address of a module, as its file counts it, may declare something atomic or volatile.
pub fn may_be_qualified(file: &Path, address: u64) -> bool {
    let module = std::fs::read(file).ok().and_then(|bytes| Module::parse(bytes.into()));
    module.is_none_or(|module| Names::of(&module, &file.to_string_lossy()).may_be_qualified(address))
}

/// The source files, but for those of the system, of the unit of code at an address of a module, as its file counts it.
pub fn files_of_unit(file: &Path, address: u64) -> Vec<String> {
    let module = std::fs::read(file).ok().and_then(|bytes| Module::parse(bytes.into()));
    let of = |module: Module| Names::of(&module, &file.to_string_lossy()).files_of_unit(address);
    module.map(of).unwrap_or_default()
}

/// What a [`Symbolizer`] may keep.
#[derive(Debug, Clone, Copy)]
pub struct SymbolizerLimits {
    /// Parsed modules.
    pub modules: usize,
    /// Bytes of module files.
    pub bytes: usize,
    /// Resolved addresses per module.
    pub addresses: usize,
}

impl Default for SymbolizerLimits {
    fn default() -> Self {
        SymbolizerLimits { modules: 128, bytes: 1 << 30, addresses: 1 << 16 }
    }
}

/// Resolves addresses and remembers them.
pub struct Symbolizer {
    limits: SymbolizerLimits,
    modules: ModuleCache,
    rules: RuleCache,
    names: HashMap<ModuleId, ModuleNames>,
}

struct ModuleNames {
    source: Names,
    resolved: HashMap<u64, Arc<[Name]>>,
}

impl Default for Symbolizer {
    fn default() -> Self {
        Symbolizer::new(SymbolizerLimits::default())
    }
}

impl Symbolizer {
    /// A symboliser that has seen nothing yet.
    #[must_use]
    pub fn new(limits: SymbolizerLimits) -> Self {
        Symbolizer {
            limits,
            modules: ModuleCache::new(limits.modules, limits.bytes),
            rules: RuleCache::default(),
            names: HashMap::new(),
        }
    }

    /// The stacks of all threads of a snapshot, in its order.
    pub fn stacks(&mut self, snapshot: &ProcessSnapshot) -> Vec<ThreadStack> {
        let mut modules = LoadedModules::new(&snapshot.map, &mut self.modules);
        let walked: Vec<_> = snapshot
            .threads
            .iter()
            .map(|thread| unwind::walk(thread, &mut modules, &mut self.rules))
            .collect();
        let stacks = snapshot
            .threads
            .iter()
            .zip(walked)
            .map(|(thread, raw)| thread_stack(thread, raw, &mut modules, &mut self.names, &self.limits))
            .collect();
        self.forget_evicted();
        stacks
    }

    /// The frames of addresses handed over by in-process code: return addresses, innermost first.
    ///
    /// Inlined functions add frames, so the result can be longer than the input.
    pub fn resolve(&mut self, map: &MemoryMap, addresses: &[CodeAddress]) -> Vec<Frame> {
        let mut modules = LoadedModules::new(map, &mut self.modules);
        let mut frames = Vec::with_capacity(addresses.len());
        for address in addresses {
            push_frames(*address, Trust::Given, &mut modules, &mut self.names, &self.limits, &mut frames);
        }
        self.forget_evicted();
        end_at_thread_start(&mut frames);
        frames
    }

    /// Reads the names of every module of a process now, so that evidence is quick later.
    pub fn prepare(&mut self, map: &MemoryMap) {
        let mut modules = LoadedModules::new(map, &mut self.modules);
        for mapping in map.mappings().iter().filter(|mapping| mapping.executable) {
            if let Some(located) = modules.find(mapping.start) {
                names_of(&located, &mapping.path, &mut self.names, &self.limits);
            }
        }
        self.forget_evicted();
    }

    fn forget_evicted(&mut self) {
        let modules = &self.modules;
        self.names.retain(|id, _| modules.contains(*id));
    }
}

/// What is above the function with which Windows begins a thread is no caller: the system's own walk of a stack may go on
/// through whatever lies there.
fn end_at_thread_start(frames: &mut Vec<Frame>) {
    let begins = |frame: &Frame| {
        let module = frame.module.as_deref().map(base_name).unwrap_or_default();
        frame.function.as_deref() == Some("RtlUserThreadStart") && module.eq_ignore_ascii_case("ntdll.dll")
    };
    if let Some(first) = frames.iter().position(begins) {
        frames.truncate(first + 1);
    }
}

fn thread_stack(
    thread: &ThreadSnapshot,
    raw: RawStack,
    modules: &mut LoadedModules<'_>,
    names: &mut HashMap<ModuleId, ModuleNames>,
    limits: &SymbolizerLimits,
) -> ThreadStack {
    let mut frames = Vec::with_capacity(raw.frames.len());
    let mut omitted = None;
    for (index, frame) in raw.frames.iter().enumerate() {
        if let Some((before, missing)) = raw.omitted
            && index == before
        {
            omitted = Some(Omitted { before: frames.len(), frames: missing });
        }
        push_frames(frame.address, frame.trust, modules, names, limits, &mut frames);
    }
    ThreadStack {
        id: thread.id,
        name: thread.name.clone(),
        scheduled: None,
        crashed: thread.crashed(),
        state: thread.state,
        syscall: thread.syscall.clone(),
        wait: thread.wait,
        cpu_ns: u64::try_from(thread.cpu.as_nanos()).unwrap_or(u64::MAX),
        wakeups: thread.wakeups,
        frames,
        omitted,
        end: raw.end,
    }
}

fn push_frames(
    address: CodeAddress,
    trust: Trust,
    modules: &mut LoadedModules<'_>,
    names: &mut HashMap<ModuleId, ModuleNames>,
    limits: &SymbolizerLimits,
    frames: &mut Vec<Frame>,
) {
    let lookup = address.for_lookup();
    let path = modules.map().find(lookup).map(|mapping| &*mapping.path).unwrap_or_default();
    let module = (!path.is_empty()).then(|| path.to_owned());
    let Some(located) = modules.find(lookup) else {
        frames.push(Frame {
            function: None,
            function_offset: None,
            offset: modules.map().find(lookup).map_or(0, |mapping| mapping.file_offset(address.value())),
            module,
            address: address.value(),
            file: None,
            line: None,
            inlined: false,
            trust,
        });
        return;
    };
    for name in names_of(&located, path, names, limits).iter() {
        frames.push(Frame {
            function: name.function.clone(),
            function_offset: name.function_offset,
            module: module.clone(),
            offset: located.address + (address.value() - lookup),
            address: address.value(),
            file: name.file.clone(),
            line: name.line,
            inlined: name.inlined,
            trust,
        });
    }
}

fn names_of(
    located: &Located,
    path: &str,
    names: &mut HashMap<ModuleId, ModuleNames>,
    limits: &SymbolizerLimits,
) -> Arc<[Name]> {
    let module = names.entry(located.id).or_insert_with(|| ModuleNames {
        source: Names::of(&located.module, path),
        resolved: HashMap::new(),
    });
    if let Some(found) = module.resolved.get(&located.address) {
        return found.clone();
    }
    if module.resolved.len() >= limits.addresses {
        module.resolved.clear();
    }
    let found: Arc<[Name]> = module.source.find(located.address).into();
    module.resolved.insert(located.address, found.clone());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbolizer_can_move_to_the_thread_that_takes_evidence() {
        fn movable<T: Send>(_: &T) {}
        movable(&Symbolizer::default());
    }

    #[test]
    fn above_the_beginning_of_a_thread_there_is_nobody() {
        let frame = |function: Option<&str>, module: &str| Frame {
            function: function.map(str::to_owned),
            function_offset: None,
            module: Some(module.to_owned()),
            offset: 0,
            address: 0,
            file: None,
            line: None,
            inlined: false,
            trust: Trust::Given,
        };
        let begin = frame(Some("RtlUserThreadStart"), r"C:\Windows\System32\ntdll.dll");
        let own = frame(Some("RtlUserThreadStart"), r"C:\mine\orders.dll");
        let mut frames = vec![own.clone(), begin.clone(), frame(None, "x"), begin.clone()];
        end_at_thread_start(&mut frames);
        assert_eq!(frames, [own, begin]);
    }

    #[test]
    fn a_call_is_looked_up_where_it_was_made() {
        assert_eq!(CodeAddress::Return(0x1000).for_lookup(), 0xfff);
        assert_eq!(CodeAddress::Instruction(0x1000).for_lookup(), 0x1000);
        assert_eq!(CodeAddress::Return(0).for_lookup(), 0);
    }
}
