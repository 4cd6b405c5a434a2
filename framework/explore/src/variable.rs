//! What lies at an address of data: a variable of a module, by its symbol table.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use object::{BinaryFormat, Object, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use waylay_evidence::{MemoryMap, demangled};

/// The variables of a process.
#[derive(Debug)]
pub struct Variables {
    /// Files by where they begin in memory.
    modules: BTreeMap<u64, String>,
    /// Those that were looked into.
    read: BTreeMap<String, Option<Symbols>>,
}

/// The data of one module.
#[derive(Debug)]
struct Symbols {
    /// Page of the lowest address that the module itself counts, and the end of the highest.
    lowest: u64,
    highest: u64,
    /// Address, length and mangled name, by address.
    all: Vec<(u64, u64, String)>,
}

impl Variables {
    /// Those of a process with this map. Files are read when an address falls into them.
    pub fn of(map: &MemoryMap) -> Variables {
        // The part of a module that begins as zeroes has no file behind it, so a module is sought by where it begins.
        let mut begins: BTreeMap<&str, u64> = BTreeMap::new();
        for mapping in map.mappings().iter().filter(|mapping| Path::new(&*mapping.path).is_absolute()) {
            let begin =
                begins.entry(&mapping.path).or_insert(mapping.start - mapping.offset.min(mapping.start));
            *begin = (*begin).min(mapping.start);
        }
        let modules = begins.into_iter().map(|(path, begin)| (begin, path.to_owned())).collect();
        Variables { modules, read: BTreeMap::new() }
    }

    /// The variable at an address, with an offset into it; nothing when no symbol covers the address.
    pub fn at(&mut self, address: u64) -> Option<String> {
        let (begin, path) = self.modules.range(..=address).next_back()?;
        if !self.read.contains_key(path) {
            self.read.insert(path.clone(), Symbols::read(Path::new(path)));
        }
        self.read.get(path)?.as_ref()?.at(address - begin)
    }
}

impl Symbols {
    fn read(path: &Path) -> Option<Symbols> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let (lowest, highest) = file.segments().fold((u64::MAX, 0), |(low, high), segment| {
            (low.min(segment.address()), high.max(segment.address() + segment.size()))
        });
        // Symbols of PE files have no length, and those with a point are sections.
        let pe = file.format() == BinaryFormat::Pe;
        let lowest = if pe { file.relative_address_base() } else { lowest & !0xfff };
        let mut all: Vec<(u64, u64, String)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| matches!(symbol.kind(), SymbolKind::Data | SymbolKind::Unknown))
            .filter(|symbol| symbol.is_definition() && (pe || symbol.size() > 0))
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .filter(|(.., name)| !pe || !name.starts_with('.'))
            .collect();
        // Of several names for one place the first one stays.
        all.sort_by_key(|(address, ..)| *address);
        all.dedup_by_key(|(address, ..)| *address);
        if pe {
            let ends: Vec<u64> = all.iter().skip(1).map(|(next, ..)| *next).chain([highest]).collect();
            for ((address, size, _), end) in all.iter_mut().zip(ends) {
                *size = end.saturating_sub(*address);
            }
        }
        Some(Symbols { lowest, highest, all })
    }

    fn at(&self, offset: u64) -> Option<String> {
        let own = offset.checked_add(self.lowest).filter(|own| *own < self.highest)?;
        let before = self.all.partition_point(|(address, ..)| *address <= own);
        let (address, size, name) = self.all.get(before.checked_sub(1)?)?;
        let within = own - address;
        match within {
            _ if within >= *size => None,
            0 => Some(demangled(name)),
            _ => Some(format!("{}+{within}", demangled(name))),
        }
    }
}
