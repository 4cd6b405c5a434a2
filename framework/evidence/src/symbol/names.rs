//! Where one module's names come from: debug information in it or in a PDB file, then symbol tables.
//!
//! System libraries are named by their symbol tables alone. Their debug information, where it is installed,
//! takes a quarter of a second to unpack, would name functions differently from machine to machine, and
//! tells about code that no test is about.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use gimli::{EndianReader, LittleEndian, SectionId};
use object::elf::{DT_NULL, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dyn64, Sym64};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::module::Module;
use crate::origin::is_runtime_file;

use super::demangle::demangle;
use super::name::Name;
use super::pdb::PdbNames;

/// Where distributions put debug information that was split off.
const DEBUG_ROOT: &str = "/usr/lib/debug/.build-id";

type Reader = EndianReader<LittleEndian, Arc<[u8]>>;

struct Symbol {
    address: u64,
    size: u64,
    name: Box<str>,
}

impl Symbol {
    /// Of several names for one place the one that callers use comes last: exported aliases begin with
    /// fewer underscores than internal ones.
    fn order(&self) -> (u64, Reverse<usize>, Reverse<usize>, &str) {
        let underscores = self.name.bytes().take_while(|byte| *byte == b'_').count();
        (self.address, Reverse(underscores), Reverse(self.name.len()), &self.name)
    }
}

/// The names of one module.
pub(super) struct Names {
    debug: Option<addr2line::Context<Reader>>,
    pdb: Option<PdbNames>,
    /// Ordered by address.
    symbols: Vec<Symbol>,
}

impl Names {
    /// Reads what a module has to offer. An unreadable part is left out; it costs names, not evidence.
    pub(super) fn of(module: &Module, path: &str) -> Names {
        let separate = separate_debug_file(module);
        let debug = match is_runtime_file(path) {
            true => None,
            false => debug_context(&module.bytes).or_else(|| debug_context(separate.as_ref()?)),
        };
        let pdb = match debug.is_none() && !is_runtime_file(path) {
            true => PdbNames::of(&module.bytes, path),
            false => None,
        };
        let mut symbols = symbol_tables(&module.bytes);
        if let Some(bytes) = &separate {
            symbols.extend(symbol_tables(bytes));
        }
        if symbols.is_empty() {
            symbols = dynamic_symbols(module);
        }
        symbols.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        Names { debug, pdb, symbols }
    }

    /// The functions at a module address, innermost first. Never empty.
    pub(super) fn find(&self, address: u64) -> Vec<Name> {
        let from_pdb = || self.pdb.as_ref()?.find(address);
        let mut names = self.debug_names(address).or_else(from_pdb).unwrap_or_default();
        if names.is_empty() {
            names.push(Name::default());
        }
        // Code written in assembly has lines but no function; line-tables-only debug information names only
        // functions that take part in inlining; functions local to a C++ file lack their namespace.
        if let Some(last) = names.last_mut()
            && let Some(symbol) = self.symbol(address)
        {
            let linked = demangle(&symbol.name);
            match &last.function {
                None => {
                    last.function = Some(linked);
                    last.function_offset = Some(address - symbol.address);
                }
                Some(short) if is_short_for(short, &linked) => last.function = Some(linked),
                Some(_) => {}
            }
        }
        names
    }

    /// Whether the unit of code at a module address may declare something atomic or volatile.
    pub(super) fn may_be_qualified(&self, address: u64) -> bool {
        let unit = |debug: &addr2line::Context<Reader>| {
            let unit = debug.find_dwarf_and_unit(address).skip_all_loads()?;
            Some(super::qualified::in_unit(unit))
        };
        self.debug.as_ref().and_then(unit).unwrap_or(true)
    }

    /// The source files of the unit of code at a module address, but for those of the system.
    pub(super) fn files_of_unit(&self, address: u64) -> Vec<String> {
        let unit = |debug: &addr2line::Context<Reader>| {
            let unit = debug.find_dwarf_and_unit(address).skip_all_loads()?;
            Some(super::qualified::files(unit))
        };
        self.debug.as_ref().and_then(unit).unwrap_or_default()
    }

    fn debug_names(&self, address: u64) -> Option<Vec<Name>> {
        let mut frames = self.debug.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut names: Vec<Name> = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.and_then(|name| name.raw_name().ok().map(|raw| demangle(&raw)));
            let (file, line) = match frame.location {
                Some(location) => (location.file.map(str::to_owned), location.line),
                None => (None, None),
            };
            names.push(Name { function, function_offset: None, file, line, inlined: true });
        }
        if let Some(last) = names.last_mut() {
            last.inlined = false;
        }
        Some(names)
    }

    /// The symbol that holds an address. Of several, one whose size covers it, and the last to begin.
    fn symbol(&self, address: u64) -> Option<&Symbol> {
        // Symbols nest rarely and not deeply; a look at a few before the address is enough.
        const LOOK_BACK: usize = 16;
        let end = self.symbols.partition_point(|symbol| symbol.address <= address);
        let before = &self.symbols[end.saturating_sub(LOOK_BACK)..end];
        let covering = before.iter().rev().find(|symbol| address - symbol.address < symbol.size);
        covering.or_else(|| before.iter().next_back().filter(|symbol| symbol.size == 0))
    }
}

/// Whether a name from debug information is the last part of a linked one: `take<u8>` of `shop::take`.
fn is_short_for(short: &str, linked: &str) -> bool {
    let base = short.split('<').next().unwrap_or(short);
    let last = linked.rsplit("::").next().unwrap_or(linked);
    let is_closure = |name: &str| name.starts_with("{closure") || name.starts_with("{{closure");
    !short.contains("::")
        && linked.contains("::")
        && (last.split('<').next() == Some(base) || is_closure(base) && is_closure(last))
}

fn separate_debug_file(module: &Module) -> Option<Arc<[u8]>> {
    let id = module.build_id.as_ref().filter(|id| id.len() > 2)?;
    let path = PathBuf::from(DEBUG_ROOT).join(&id[..2]).join(format!("{}.debug", &id[2..]));
    fs::read(path).ok().map(Into::into)
}

fn debug_context(bytes: &Arc<[u8]>) -> Option<addr2line::Context<Reader>> {
    let file = object::File::parse(&**bytes).ok()?;
    file.section_by_name(".debug_info")
        .filter(|section| section.data().is_ok_and(|data| !data.is_empty()))?;
    let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
        // Sections may be compressed; those that say where variables are would be unpacked for nothing.
        let wanted = !matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists | SectionId::DebugTypes);
        Ok(section_reader(bytes, &file, if wanted { id.name() } else { "" }))
    };
    addr2line::Context::from_dwarf(gimli::Dwarf::load(load).ok()?).ok()
}

/// A section without copying, unless it is compressed.
fn section_reader(bytes: &Arc<[u8]>, file: &object::File<'_>, name: &str) -> Reader {
    let empty = || EndianReader::new(Arc::from([]), LittleEndian);
    let Some(section) = file.section_by_name(name) else { return empty() };
    match section.uncompressed_data() {
        Ok(Cow::Borrowed(_)) => match section.file_range() {
            Some((start, size)) => {
                let (start, size) = (start as usize, size as usize);
                EndianReader::new(bytes.clone(), LittleEndian).range(start..start + size)
            }
            None => empty(),
        },
        Ok(Cow::Owned(data)) => EndianReader::new(data.into(), LittleEndian),
        Err(_) => empty(),
    }
}

fn symbol_tables(bytes: &[u8]) -> Vec<Symbol> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let mut symbols: Vec<Symbol> = match &file {
        // ELF files export nothing that is not among their symbols.
        object::File::Pe64(file) => file.exports().into_iter().flatten().filter_map(exported).collect(),
        _ => Vec::new(),
    };
    let listed = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| {
            symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown)
        })
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(Symbol { address: symbol.address(), size: symbol.size(), name: name.into() })
        });
    symbols.extend(listed);
    symbols
}

/// An exported function as a symbol; one that is passed on to another module has no place in this one.
fn exported(export: object::Result<object::Export<'_>>) -> Option<Symbol> {
    let export = export.ok()?;
    let object::NameOrOrdinal::Name(name) = export.name() else { return None };
    let object::ExportTarget::Address { address } = export.target() else { return None };
    Some(Symbol { address, size: 0, name: std::str::from_utf8(name).ok()?.into() })
}

/// The dynamic symbols of an image without section headers. Their number is written nowhere; linkers put
/// the strings behind the symbols, which bounds it.
fn dynamic_symbols(module: &Module) -> Vec<Symbol> {
    let endian = Endianness::Little;
    let entries = || {
        let bytes = module.slice(module.dynamic.as_ref()?);
        let count = bytes.len() / size_of::<Dyn64<Endianness>>();
        let (entries, _) = object::pod::slice_from_bytes::<Dyn64<Endianness>>(bytes, count).ok()?;
        let value = |tag: object::elf::DynamicTag| {
            let mut entries = entries.iter().take_while(|entry| entry.d_tag.get(endian) != DT_NULL);
            entries.find(|entry| entry.d_tag.get(endian) == tag).map(|entry| entry.d_val.get(endian))
        };
        let (table, strings, length) = (value(DT_SYMTAB)?, value(DT_STRTAB)?, value(DT_STRSZ)?);
        let count = usize::try_from(strings.checked_sub(table)?).ok()? / size_of::<Sym64<Endianness>>();
        let start = module.offset_of(strings)?;
        let strings = module.bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)?;
        let bytes = module.bytes.get(module.offset_of(table)?..)?;
        let (symbols, _) = object::pod::slice_from_bytes::<Sym64<Endianness>>(bytes, count).ok()?;
        Some((symbols, strings))
    };
    let Some((symbols, strings)) = entries() else { return Vec::new() };
    symbols
        .iter()
        .filter(|symbol| symbol.st_type() == object::elf::STT_FUNC && symbol.st_value.get(endian) != 0)
        .filter_map(|symbol| {
            let name = strings.get(symbol.st_name.get(endian) as usize..)?.split(|byte| *byte == 0).next()?;
            Some(Symbol {
                address: symbol.st_value.get(endian),
                size: symbol.st_size.get(endian),
                name: std::str::from_utf8(name).ok()?.into(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(symbols: &[(u64, u64, &str)]) -> Names {
        let mut symbols: Vec<_> = symbols
            .iter()
            .map(|(address, size, name)| Symbol { address: *address, size: *size, name: (*name).into() })
            .collect();
        symbols.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        Names { debug: None, pdb: None, symbols }
    }

    fn function(names: &Names, address: u64) -> Option<String> {
        names.find(address).remove(0).function
    }

    #[test]
    fn the_name_that_callers_use_wins() {
        let names = names(&[(16, 8, "__pause"), (16, 8, "pause"), (16, 8, "__libc_pause")]);
        assert_eq!(function(&names, 20).as_deref(), Some("pause"));
        assert_eq!(names.find(20)[0].function_offset, Some(4));
    }

    #[test]
    fn a_short_name_is_completed_only_by_its_own() {
        assert!(is_short_for("take", "shop::(anonymous namespace)::Book<int>::take"));
        assert!(is_short_for("transfer<u64>", "locks::Account<T>::transfer"));
        assert!(is_short_for("{closure#0}", "locks::main::{{closure}}"));
        assert!(!is_short_for("take", "shop::retake"));
        assert!(!is_short_for("shop::take", "other::take"));
        assert!(!is_short_for("take", "take"));
    }

    #[test]
    fn addresses_outside_every_symbol_stay_nameless() {
        let names = names(&[(16, 8, "a"), (32, 0, "assembly")]);
        assert_eq!(function(&names, 24), None);
        assert_eq!(function(&names, 8), None);
        assert_eq!(function(&names, 40).as_deref(), Some("assembly"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn dynamic_symbols_are_found_without_section_headers() {
        let path = std::fs::read_to_string("/proc/self/maps")
            .expect("our own map")
            .lines()
            .find_map(|line| {
                line.split_once('/')
                    .map(|(_, path)| format!("/{path}"))
                    .filter(|path| path.contains("/libc.so"))
            })
            .expect("libc is loaded");
        let module = Module::parse(fs::read(path).expect("readable").into()).expect("an ELF file");
        let symbols = dynamic_symbols(&module);
        assert!(symbols.iter().any(|symbol| &*symbol.name == "malloc" && symbol.size > 0));
    }
}
