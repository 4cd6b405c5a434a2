//! Builds the programs next to this file and runs them with a region.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;
use waylay_leaks::region::{HeapSnapshot, Sampling, SharedRegion, SiteId, SiteSnapshot, Tag};

/// Every allocation worth mentioning is a sample, and stands for itself.
pub(crate) const EVERYTHING: Sampling = Sampling { period: 1, seed: Some(1) };

/// The library under test, beside this test executable.
pub(crate) fn library() -> PathBuf {
    let executable = std::env::current_exe().expect("own path");
    let library = executable.parent().expect("deps folder").join("libwaylay_control.so");
    assert!(library.is_file(), "{} is not built", library.display());
    library
}

/// A compiled program, gone when it and everything that ran it are dropped.
#[derive(Clone)]
pub(crate) struct Program {
    folder: Arc<TempDir>,
}

impl Program {
    /// A C program at a fixed address, so that frames can be resolved after its death.
    pub(crate) fn c(source: &str) -> Program {
        Program::build("cc", source, &["-O2", "-g", "-no-pie", "-pthread"])
    }

    pub(crate) fn build(compiler: &str, source: &str, flags: &[&str]) -> Program {
        let program = Program { folder: Arc::new(TempDir::new().expect("temporary folder")) };
        program.compile(compiler, source, flags, "program");
        program
    }

    /// Compiles one more source into the program's folder.
    pub(crate) fn compile(&self, compiler: &str, source: &str, flags: &[&str], output: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heap/programs").join(source);
        let mut command = Command::new(compiler);
        command.current_dir(self.folder.path()).arg(source).arg("-o").arg(output).args(flags);
        let built = command.output().unwrap_or_else(|error| panic!("cannot run {compiler}: {error}"));
        assert!(built.status.success(), "{command:?}: {}", String::from_utf8_lossy(&built.stderr));
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path());
        command.args(arguments).current_dir(self.folder.path()).env("LD_LIBRARY_PATH", self.folder.path());
        command
    }

    /// Runs to the end with heap accounting, which must end well.
    pub(crate) fn run(&self, arguments: &[&str], sampling: Sampling) -> Ended {
        let region = SharedRegion::create().expect("region");
        let mut command = self.command(arguments);
        region.attach(&mut command, &library(), sampling);
        let output = command.output().expect("run");
        assert!(output.status.success(), "{command:?}: {}, {}", output.status, text(&output.stderr));
        let snapshot = region.snapshot();
        assert_ne!(snapshot.owner, 0, "nobody claimed the region");
        assert_eq!((snapshot.dropped.samples, snapshot.dropped.sites), (0, 0), "tables overflowed");
        Ended { program: self.clone(), region, snapshot, output }
    }
}

/// What is left of a program that ran to its end.
pub(crate) struct Ended {
    program: Program,
    pub(crate) region: SharedRegion,
    pub(crate) snapshot: HeapSnapshot,
    output: Output,
}

impl Ended {
    /// The number the program printed after a word.
    pub(crate) fn printed(&self, name: &str) -> u64 {
        let output = text(&self.output.stdout);
        let mut lines = output.lines().filter_map(|line| line.split_once(' '));
        let (_, value) =
            lines.find(|(word, _)| *word == name).unwrap_or_else(|| panic!("no {name} in {output}"));
        value.parse().expect("a number")
    }

    /// Functions on the stack of a site, inlined ones included, innermost first.
    pub(crate) fn functions(&self, site: SiteId) -> Vec<String> {
        let stack = self.region.region().stack(site).expect("published stack");
        functions_at(&self.program.path(), &stack.frames)
    }

    /// The sites that have a function on their stack, with live samples.
    pub(crate) fn sites_of(&self, function: &str) -> BTreeMap<(Tag, SiteId), &SiteSnapshot> {
        let sites = self.snapshot.sites.iter();
        let of_function =
            sites.filter(|((_, id), _)| self.functions(*id).iter().any(|name| name.contains(function)));
        of_function.map(|(key, site)| (*key, site)).collect()
    }

    /// Sizes of the live samples of those sites, sorted.
    pub(crate) fn live_sizes_of(&self, function: &str) -> Vec<u64> {
        let sites = self.sites_of(function);
        let mut sizes: Vec<u64> =
            sites.values().flat_map(|site| site.live.iter().map(|sample| sample.size)).collect();
        sizes.sort_unstable();
        sizes
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Functions at return addresses of a program without relocation, inlined ones included.
pub(crate) fn functions_at(program: &Path, frames: &[u64]) -> Vec<String> {
    let addresses = frames.iter().map(|frame| format!("{:#x}", frame - 1));
    let mut command = Command::new("addr2line");
    command.args(["-f", "-i", "-C", "-e"]).arg(program).args(addresses);
    let output = command.output().expect("addr2line");
    text(&output.stdout).lines().step_by(2).map(str::to_owned).collect()
}
