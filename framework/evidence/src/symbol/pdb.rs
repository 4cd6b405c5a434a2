//! Names from a PDB file, which is where Microsoft's tools put debug information.
//!
//! A module names its PDB file by a path, and by a number that both have. The file is looked for there and beside the
//! module, because modules are moved together with it.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::Object;
use pdb_addr2line::pdb::PDB;
use pdb_addr2line::{Context, ContextPdbData, TypeFormatterFlags};
use self_cell::self_cell;

use crate::origin::base_name;

use super::demangle::demangle;
use super::name::Name;

type Data = ContextPdbData<'static, 'static, File>;
type Borrowed<'a> = Context<'a, 'static>;

self_cell!(
    /// What is read of the file, and the tables over it.
    struct Read {
        owner: Data,
        #[not_covariant]
        dependent: Borrowed,
    }
);

/// The names of one module.
pub(super) struct PdbNames {
    read: Read,
    image_base: u64,
}

impl PdbNames {
    /// Finds and opens the PDB file of a module that was loaded from this path, if it has one.
    pub(super) fn of(bytes: &[u8], path: &str) -> Option<PdbNames> {
        let module = object::File::parse(bytes).ok()?;
        let wanted = module.pdb_info().ok()??;
        let guid = wanted.guid();
        let named = std::str::from_utf8(wanted.path()).ok()?;
        places(named, path).into_iter().find_map(|place| open(&place, &guid)).and_then(|data| {
            let read = Read::try_new(data, |data| data.make_context_with_formatter_flags(flags())).ok()?;
            Some(PdbNames { read, image_base: module.relative_address_base() })
        })
    }

    /// The functions at a module address, innermost first.
    pub(super) fn find(&self, address: u64) -> Option<Vec<Name>> {
        let relative = u32::try_from(address.checked_sub(self.image_base)?).ok()?;
        self.read.with_dependent(|_, context| {
            let found = context.find_frames(relative).ok()??;
            let last = found.frames.len().saturating_sub(1);
            let name = |(index, frame): (usize, pdb_addr2line::Frame<'_>)| Name {
                function: frame.function.as_deref().map(demangle),
                function_offset: (index == last).then(|| u64::from(relative - found.start_rva)),
                file: frame.file.map(|file| file.into_owned()),
                line: frame.line.filter(|&line| line != 0),
                inlined: index < last,
            };
            Some(found.frames.into_iter().enumerate().map(name).collect())
        })
    }
}

/// As names from elsewhere are written: without the types of arguments.
fn flags() -> TypeFormatterFlags {
    TypeFormatterFlags::default() | TypeFormatterFlags::NO_ARGUMENTS
}

/// Where the file may be: where it was made, and beside the module.
fn places(named: &str, module: &str) -> [PathBuf; 2] {
    let folder = &module[..module.len() - base_name(module).len()];
    [PathBuf::from(named), PathBuf::from(format!("{folder}{}", base_name(named)))]
}

/// Opens the file if it belongs to the module: that of another build would name the wrong lines.
fn open(place: &Path, guid: &[u8; 16]) -> Option<Data> {
    let mut pdb = PDB::open(File::open(place).ok()?).ok()?;
    let found = pdb.pdb_information().ok()?.guid.to_bytes_le();
    (found == *guid).then_some(())?;
    ContextPdbData::try_from_pdb(pdb).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use object::ObjectSection;

    use super::*;
    use crate::module::Module;
    use crate::symbol::names::Names;

    const SOURCE: &str = "static volatile int stock;
namespace shop {
static inline int taken(int n) {
  stock -= n;
  return stock;
}
struct Book { int take(int n); };
__attribute__((noinline)) int Book::take(int n) {
  return taken(n) + 1;
}
}
extern \"C\" __declspec(dllexport) int entry(int n) {
  shop::Book book;
  return book.take(n) * 2;
}
";

    /// Compiles a library as Microsoft's tools do; false without clang. The linker comes with Rust.
    fn build(folder: &Path, source: &str) -> bool {
        std::fs::write(folder.join("shop.cpp"), source).expect("writable");
        let compiled = Command::new("clang")
            .current_dir(folder)
            .args([
                "--target=x86_64-pc-windows-msvc",
                "-O1",
                "-g",
                "-gcodeview",
                "-c",
                "shop.cpp",
                "-o",
                "shop.obj",
            ])
            .status();
        if compiled.is_err() {
            assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "clang is missing");
            return false;
        }
        let root = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc runs").stdout;
        let root = String::from_utf8(root).expect("a path");
        let linker = Path::new(root.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
        let options = ["-flavor", "link", "/nologo", "/dll", "/noentry", "/nodefaultlib", "/debug"];
        let files = ["/out:shop.dll", "/pdb:shop.pdb", "shop.obj"];
        let linked = Command::new(linker).current_dir(folder).args(options).args(files).status();
        assert!(compiled.is_ok_and(|status| status.success()) && linked.is_ok_and(|status| status.success()));
        true
    }

    /// The names of the library in a folder, as one line for each stack of its code.
    fn told(folder: &Path) -> String {
        let path = folder.join("shop.dll");
        let module = Module::parse(std::fs::read(&path).expect("readable").into()).expect("a PE file");
        let names = Names::of(&module, path.to_str().expect("plain"));
        let file = object::File::parse(&*module.bytes).expect("a PE file");
        let code = file.section_by_name(".text").expect("code");
        let mut lines: Vec<String> = (code.address()..code.address() + code.size())
            .map(|address| {
                let frames = names.find(address).into_iter().map(|name| {
                    let place = name.file.as_deref().map(base_name).zip(name.line);
                    let place = place.map(|(file, line)| format!(" {file}:{line}")).unwrap_or_default();
                    format!(
                        "{}{place}{}",
                        name.function.unwrap_or_default(),
                        if name.inlined { " in" } else { "" }
                    )
                });
                frames.collect::<Vec<_>>().join(" ")
            })
            .collect();
        lines.dedup();
        lines.join("\n")
    }

    #[test]
    fn functions_lines_and_inlined_calls_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        if !build(folder.path(), SOURCE) {
            return;
        }
        let all = told(folder.path());
        assert!(all.contains("shop::taken shop.cpp:4 in shop::Book::take"), "{all}");
        assert!(all.contains("shop::Book::take shop.cpp:9") && all.contains("entry shop.cpp:14"), "{all}");

        let moved = tempfile::tempdir().expect("a folder");
        for file in ["shop.dll", "shop.pdb"] {
            std::fs::rename(folder.path().join(file), moved.path().join(file)).expect("the same disk");
        }
        assert_eq!(told(moved.path()), all, "it lies beside the library, too");

        assert!(build(folder.path(), &format!("\n{SOURCE}")));
        std::fs::rename(folder.path().join("shop.dll"), moved.path().join("shop.dll"))
            .expect("the same disk");
        std::fs::remove_file(folder.path().join("shop.pdb")).expect("there");
        let other = told(moved.path());
        assert!(
            !other.contains("shop.cpp") && other.contains("entry"),
            "that of another build is not used: {other}"
        );
    }

    #[test]
    fn a_file_that_is_none_costs_names_only() {
        let folder = tempfile::tempdir().expect("a folder");
        if !build(folder.path(), SOURCE) {
            return;
        }
        for bytes in [&b""[..], b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", &[7; 5000]] {
            std::fs::write(folder.path().join("shop.pdb"), bytes).expect("writable");
            let all = told(folder.path());
            assert!(all.contains("entry") && !all.contains("shop.cpp"), "{all}");
        }
        // Cut off anywhere, it names what it can and never more.
        build(folder.path(), SOURCE);
        let whole = std::fs::read(folder.path().join("shop.pdb")).expect("readable");
        for length in (0..whole.len()).step_by(4096) {
            std::fs::write(folder.path().join("shop.pdb"), &whole[..length]).expect("writable");
            assert!(told(folder.path()).contains("entry"), "{length} bytes");
        }
    }
}
