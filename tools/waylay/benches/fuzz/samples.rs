//! What inputs are made of: files that a real campaign wrote, and files that compilers wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CONFIG: &str = "[defaults]\nworkers = 2\nleaks = false\nmax-failures = 2\n\
    [[scenario]]\nname = \"strict\"\nmode = \"strict\"\n[[scenario.test]]\nplugin = \"waylay_zoo\"\nname = \"lost-update\"\n\
    iterations = 300\n\
    [[scenario]]\nname = \"free\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"fail-*\"\niterations = 4\n\
    [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"crash\"\niterations = 30\n";

/// A folder with samples.
pub(crate) struct Samples {
    folder: tempfile::TempDir,
    /// The folder of the campaign.
    pub(crate) campaign: PathBuf,
}

impl Samples {
    /// Runs a campaign and a few compilers.
    pub(crate) fn make() -> Samples {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        fs::write(path.join("waylay.toml"), CONFIG).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(["run", "waylay.toml", "--out", "out", "--seed", "7", "--quiet"]).current_dir(path);
        let ran = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the command runs");
        assert_eq!(ran.code(), Some(1), "the campaign has failures");
        let campaign = waylay_driver::archive::campaigns(&path.join("out")).pop().expect("a campaign");
        fs::write(path.join("sample.c"), include_str!("../storm/racy.c")).expect("a file");
        let source = path.join("sample.c");
        for (name, flags) in [
            ("sample.elf", &["-g", "-O1"][..]),
            ("sample5.elf", &["-gdwarf-5", "-gz", "-O2"]),
            ("sample.so", &["-gdwarf-4", "-shared", "-fPIC"]),
        ] {
            let place = format!("-ffile-prefix-map={}=/sample", path.display());
            run(Command::new("cc")
                .args(["-pthread", &place])
                .args(flags)
                .arg("-o")
                .arg(path.join(name))
                .arg(&source));
        }
        build_for_windows(path);
        Samples { folder, campaign }
    }

    /// The files of these names that there are.
    pub(crate) fn files(&self, names: &[&str]) -> Vec<Vec<u8>> {
        names.iter().filter_map(|name| fs::read(self.folder.path().join(name)).ok()).collect()
    }

    /// The files of that name in the campaign, wherever they are.
    pub(crate) fn of_campaign(&self, name: &str) -> Vec<Vec<u8>> {
        let failures = fs::read_dir(self.campaign.join("failures")).into_iter().flatten().flatten();
        let places = failures.map(|entry| entry.path()).chain([self.campaign.clone()]);
        places.filter_map(|place| fs::read(place.join(name)).ok()).collect()
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A library and its PDB file as Microsoft's tools write them, where there is clang; the linker comes with Rust.
fn build_for_windows(folder: &Path) {
    const SOURCE: &str = "static volatile int stock;\nstatic inline int taken(int n) { stock -= n; return stock; }\n\
        __attribute__((noinline)) int take(int n) { return taken(n) + 1; }\n\
        __declspec(dllexport) int entry(int n) { return take(n) * 2; }\n";
    fs::write(folder.join("shop.c"), SOURCE).expect("a file");
    let options =
        ["--target=x86_64-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-c", "shop.c", "-o", "shop.obj"];
    let compiled = Command::new("clang").current_dir(folder).args(options).output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "clang is missing");
        eprintln!("without clang there are no samples of PE and PDB files");
        return;
    }
    let root = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc runs").stdout;
    let root = String::from_utf8(root).expect("a path");
    let linker = Path::new(root.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    let options = ["-flavor", "link", "/nologo", "/dll", "/noentry", "/nodefaultlib", "/debug"];
    let files = ["/out:shop.dll", "/pdb:shop.pdb", "shop.obj"];
    run(Command::new(linker).current_dir(folder).args(options).args(files));
}
