//! Which modules are in memory: a bounded cache of parsed files, and the view of one process.

use std::collections::HashMap;
use std::sync::Arc;

use crate::memory_map::{Mapping, MemoryMap};

use super::{Module, ModuleKey};

/// Names a module while it is in the cache; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(u64);

struct Entry {
    id: ModuleId,
    module: Arc<Module>,
    used: u64,
}

/// Parsed modules, the least recently used dropped first.
pub(crate) struct ModuleCache {
    entries: HashMap<ModuleKey, Entry>,
    clock: u64,
    most_modules: usize,
    most_bytes: usize,
}

impl ModuleCache {
    pub(crate) fn new(most_modules: usize, most_bytes: usize) -> Self {
        ModuleCache { entries: HashMap::new(), clock: 0, most_modules, most_bytes }
    }

    /// The module behind a mapping, from the cache or from its file.
    pub(crate) fn get(&mut self, mapping: &Mapping) -> Option<(ModuleId, Arc<Module>)> {
        self.clock += 1;
        let key = ModuleKey::of(mapping);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.used = self.clock;
            return Some((entry.id, entry.module.clone()));
        }
        let module = Arc::new(Module::open(mapping)?);
        let id = ModuleId(self.clock);
        self.entries.insert(key, Entry { id, module: module.clone(), used: self.clock });
        self.shrink();
        Some((id, module))
    }

    /// Whether a module is still in the cache.
    pub(crate) fn contains(&self, id: ModuleId) -> bool {
        self.entries.values().any(|entry| entry.id == id)
    }

    fn shrink(&mut self) {
        while self.entries.len() > 1
            && (self.entries.len() > self.most_modules || self.bytes() > self.most_bytes)
        {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            match oldest {
                Some(key) => self.entries.remove(&key),
                None => return,
            };
        }
    }

    fn bytes(&self) -> usize {
        self.entries.values().map(|entry| entry.module.bytes.len()).sum()
    }
}

/// A code address found in a module.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) id: ModuleId,
    pub(crate) module: Arc<Module>,
    /// The address as the module counts it.
    pub(crate) address: u64,
}

enum Slot {
    NotAsked,
    Absent,
    Present(ModuleId, Arc<Module>),
}

/// The modules of one process, each looked up once.
pub(crate) struct LoadedModules<'a> {
    map: &'a MemoryMap,
    cache: &'a mut ModuleCache,
    slots: Vec<Slot>,
}

impl<'a> LoadedModules<'a> {
    pub(crate) fn new(map: &'a MemoryMap, cache: &'a mut ModuleCache) -> Self {
        let slots = map.mappings().iter().map(|_| Slot::NotAsked).collect();
        LoadedModules { map, cache, slots }
    }

    pub(crate) fn map(&self) -> &'a MemoryMap {
        self.map
    }

    /// The module that holds an address of the process.
    pub(crate) fn find(&mut self, address: u64) -> Option<Located> {
        let index = self.map.index_of(address)?;
        let mapping = &self.map.mappings()[index];
        let slot = &mut self.slots[index];
        if let Slot::NotAsked = slot {
            *slot = match self.cache.get(mapping) {
                Some((id, module)) => Slot::Present(id, module),
                None => Slot::Absent,
            };
        }
        let Slot::Present(id, module) = slot else { return None };
        let address = module.address_of(mapping.file_offset(address))?;
        Some(Located { id: *id, module: module.clone(), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ProcessId;

    #[test]
    fn the_least_recently_used_module_goes_first() {
        let map = MemoryMap::of(ProcessId(std::process::id())).expect("our own map");
        let mut files: Vec<_> = map.mappings().iter().filter(|m| m.executable && m.inode != 0).collect();
        files.dedup_by_key(|mapping| mapping.inode);
        assert!(files.len() >= 3, "a test binary, libc and the loader at least");
        let mut cache = ModuleCache::new(2, usize::MAX);
        let ids: Vec<_> = files[..3].iter().map(|mapping| cache.get(mapping).expect("readable").0).collect();
        assert!(!cache.contains(ids[0]));
        assert!(cache.contains(ids[1]) && cache.contains(ids[2]));
        assert_eq!(cache.get(files[2]).expect("cached").0, ids[2]);
    }

    #[test]
    fn the_newest_module_stays_even_if_it_is_too_large() {
        let map = MemoryMap::of(ProcessId(std::process::id())).expect("our own map");
        let file = map.mappings().iter().find(|m| m.executable && m.inode != 0).expect("a module");
        let mut cache = ModuleCache::new(8, 1);
        let (id, _) = cache.get(file).expect("readable");
        assert!(cache.contains(id));
    }
}
