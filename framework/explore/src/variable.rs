//! What lies at an address of data: a variable of a module, by its symbol table.

use std::collections::BTreeMap;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use waylay_evidence::{MemoryMap, demangled};

/// The variable at an address, with an offset into it; nothing when no symbol covers the address.
pub fn at(map: &MemoryMap, address: u64) -> Option<String> {
    // The part of a module that begins as zeroes has no file behind it, so the module is sought by where it begins.
    let mut modules: BTreeMap<&str, u64> = BTreeMap::new();
    for mapping in map.mappings().iter().filter(|mapping| mapping.path.starts_with('/')) {
        let begin = modules.entry(&mapping.path).or_insert(mapping.start - mapping.offset.min(mapping.start));
        *begin = (*begin).min(mapping.start);
    }
    let (path, begin) =
        modules.into_iter().filter(|(_, begin)| *begin <= address).max_by_key(|(_, begin)| *begin)?;
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let (lowest, highest) = file.segments().fold((u64::MAX, 0), |(low, high), segment| {
        (low.min(segment.address()), high.max(segment.address() + segment.size()))
    });
    let own = (address - begin).checked_add(lowest & !0xfff)?;
    if own >= highest {
        return None;
    }
    let data = |symbol: &object::Symbol<'_, '_>| {
        matches!(symbol.kind(), SymbolKind::Data | SymbolKind::Unknown)
            && symbol.is_definition()
            && (symbol.address()..symbol.address() + symbol.size()).contains(&own)
    };
    let symbol = file.symbols().find(data).or_else(|| file.dynamic_symbols().find(data))?;
    let name = demangled(symbol.name().ok()?);
    match own - symbol.address() {
        0 => Some(name),
        offset => Some(format!("{name}+{offset}")),
    }
}
