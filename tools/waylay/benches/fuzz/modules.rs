//! Files of code: the driver reads those of the test, for names, lines, unwind tables and patches.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use waylay_evidence::{Build, CodeAddress, Frame, MemoryMap, Symbolizer, Unseen};
use waylay_patch::image::Image;
use waylay_patch::{Plan, Wanted};

use super::readers::Target;
use super::samples::Samples;

/// The readers of each kind of file.
pub(crate) fn targets(samples: &Samples, place: &Path) -> Vec<Target> {
    let elf = samples.files(&["sample.elf", "sample5.elf", "sample.so"]);
    let pe = samples.files(&["shop.dll"]);
    let pdb = samples.files(&["shop.pdb"]);
    let mut targets =
        vec![names("elf", elf.clone(), &place.join("module.elf"), None), patches("patch-elf", elf)];
    if let (Some(library), Some(_)) = (pe.first().cloned(), pdb.first()) {
        fs::write(place.join("shop.pdb"), &pdb[0]).expect("a file");
        targets.push(names("pe", pe.clone(), &place.join("shop.dll"), None));
        targets.push(patches("patch-pe", pe));
        // The library stays as it is, the file that it names is another one each time.
        let folder = place.join("pdb");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("shop.dll"), library).expect("a file");
        targets.push(names("pdb", pdb, &folder.join("shop.pdb"), Some(&folder.join("shop.dll"))));
    }
    targets
}

/// Names, lines and builds of a file, or of the module that uses it.
fn names(name: &'static str, samples: Vec<Vec<u8>>, file: &Path, module: Option<&Path>) -> Target {
    let (file, module) = (file.to_owned(), module.unwrap_or(file).to_owned());
    let read = move |bytes: &[u8]| -> Vec<Frame> {
        fs::write(&file, bytes).expect("a file");
        // A map names files by their numbers too, so that one that was replaced is not taken for what was loaded.
        let found = fs::metadata(&module).expect("a module");
        let (length, device) = (found.len().next_multiple_of(4096).max(4096), found.dev());
        let (major, minor) = (libc::major(device), libc::minor(device));
        let text = format!(
            "{BASE:x}-{:x} r-xp 00000000 {major:02x}:{minor:02x} {} {}\n",
            BASE + length,
            found.ino(),
            module.display()
        );
        let map = MemoryMap::parse(&text).expect("a map of one file");
        let mut symbols = Symbolizer::default();
        symbols.prepare(&map);
        let addresses: Vec<CodeAddress> =
            (0..length).step_by(1 + length as usize / 40).map(|at| CodeAddress::Return(BASE + at)).collect();
        let _ = (Build::of_file(&module), Unseen::of(&module));
        symbols.resolve(&map, &addresses)
    };
    // Where a sample itself has no names, nothing is tried.
    let named = |frame: &Frame| frame.function.is_some();
    for sample in &samples {
        assert!(read(sample).iter().any(named), "the sample of {name} has no names");
    }
    Target { name, samples, text: false, cost: 200, read: Box::new(move |bytes| drop(read(bytes))) }
}

const BASE: u64 = 0x5555_0000_0000;

/// What of a file can be patched.
fn patches(name: &'static str, samples: Vec<Vec<u8>>) -> Target {
    let read = |bytes: &[u8]| {
        let _ = Image::parse(bytes).map(|image| waylay_patch::code::Code::decode(&image));
        let _ = waylay_patch::image::libraries(bytes);
        for wanted in [Wanted::Atomics, Wanted::Memory, Wanted::All] {
            if let Ok(plan) = Plan::of(bytes, wanted) {
                assert!(Plan::from_bytes(&plan.to_bytes()).is_some(), "what was written is not read");
            }
        }
    };
    Target { name, samples, text: false, cost: 40, read: Box::new(read) }
}
