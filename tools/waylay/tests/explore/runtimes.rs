//! Programs of other languages' runtimes: each is controlled, with the right output in every schedule, or refused before `main`
//! with the reason and what works instead.

use std::path::Path;
use std::process::Command;

use super::support::Workplace;
use super::{build, explore};

/// Whether a runtime can be started. Those that every machine of CI has are demanded there.
fn is_here(command: &str, demanded: bool) -> bool {
    let here = Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success());
    let required = demanded && std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_some();
    assert!(here || !required, "{command} is not installed");
    if !here {
        eprintln!("{command} is not installed: not tested");
    }
    here
}

/// The program that a command is, behind links and the shims of version managers.
fn program_of(command: &str, print: &[&str]) -> String {
    let said = Command::new(command).args(print).output().expect("it starts");
    let said = String::from_utf8(said.stdout).expect("a path");
    std::fs::canonicalize(said.trim()).expect("a program").display().to_string()
}

/// Some schedules at each level whose steps do not take long in an unoptimised build; docs/platforms.md has what 200 showed.
fn is_controlled(place: &Workplace, levels: &[&str], program: &str, arguments: &[&str], output: &str) {
    let reference = place.write("expected.txt", output);
    let reference = reference.to_str().expect("a plain path");
    for level in levels {
        let options = ["explore", "--json", "--quiet", "--runs", "2", "--level", level, "--timeout", "120s"];
        let ran =
            place.waylay(&[&options[..], &["--expect-stdout", reference, "--", program], arguments].concat());
        let summary = ran.json();
        assert_eq!(
            (ran.code(), &summary["failures"], &summary["limit_reached"]),
            (Some(0), &0.into(), &0.into()),
            "{level}: {ran:#?}"
        );
        assert!(summary["threads"].as_u64().is_some_and(|threads| threads >= 4), "{level}: {summary:#}");
    }
}

#[test]
fn python_is_controlled() {
    if !is_here("python3", true) {
        return;
    }
    let place = Workplace::new();
    let script = place.write(
        "threads.py",
        "import threading, queue\nlock = threading.Lock(); n = 0; q = queue.Queue(2); out = []\n\
         def add():\n    global n\n    for _ in range(5):\n        with lock: n += 1\n    q.put(1)\n\
         def take():\n    for _ in range(3): out.append(q.get())\n\
         ts = [threading.Thread(target=f) for f in (add, add, add, take)]\n\
         [t.start() for t in ts]; [t.join() for t in ts]\n\
         e = threading.Event(); t = threading.Timer(0.01, e.set); t.start(); e.wait(); t.join()\n\
         print(n, sum(out))\n",
    );
    let program = program_of("python3", &["-c", "import sys; print(sys.executable)"]);
    is_controlled(
        &place,
        &["sync", "atomics"],
        &program,
        &["-S", script.to_str().expect("a plain path")],
        "15 3\n",
    );
}

#[test]
fn node_is_controlled() {
    if !is_here("node", true) {
        return;
    }
    let place = Workplace::new();
    let script = place.write(
        "pool.js",
        "const crypto = require('crypto'), fs = require('fs'), zlib = require('zlib');\n\
         let n = 0; const done = () => { if (++n === 4) console.log('all'); };\n\
         crypto.pbkdf2('a', 'b', 10, 16, 'sha256', done); fs.readFile(__filename, done);\n\
         zlib.gzip('hello', (error, packed) => zlib.gunzip(packed, done)); setTimeout(done, 5);\n",
    );
    let program = program_of("node", &["-p", "process.execPath"]);
    is_controlled(&place, &["sync"], &program, &[script.to_str().expect("a plain path")], "all\n");
}

#[test]
fn java_is_controlled() {
    if !is_here("java", true) || !is_here("javac", true) {
        return;
    }
    let place = Workplace::new();
    place.write(
        "Locks.java",
        "import java.util.concurrent.*;\npublic class Locks {\n  static int n;\n\
         public static void main(String[] none) throws Exception {\n\
           Object lock = new Object(); Thread[] ts = new Thread[3];\n\
           for (int i = 0; i < 3; i++) { ts[i] = new Thread(() -> { for (int j = 0; j < 50; j++) synchronized (lock) { n++; } }); ts[i].start(); }\n\
           for (Thread t : ts) t.join();\n\
           ExecutorService pool = Executors.newFixedThreadPool(2); int sum = 0;\n\
           for (int i = 0; i < 5; i++) { int k = i; sum += pool.submit(() -> k).get(); }\n\
           pool.shutdown(); System.out.println(n + \" \" + sum);\n  }\n}\n",
    );
    let made =
        Command::new("javac").current_dir(place.path()).arg("Locks.java").status().expect("javac starts");
    assert!(made.success());
    let home = program_of("sh", &["-c", "readlink -f \"$(command -v java)\""]);
    is_controlled(&place, &["sync"], &home, &["-cp", ".", "Locks"], "150 10\n");
}

fn is_refused_as_go(place: &Workplace, program: &str) {
    let ran = explore(place, &["--runs", "3"], program);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    let sentence = format!(
        "is a Go program, whose runtime makes and switches threads by system calls of its own: strict \
         mode cannot order them; `waylay randomizer -- {program}` disturbs them from outside"
    );
    assert!(ran.stderr.contains(&sentence) && !ran.stderr.contains("exploring"), "{ran:#?}");
}

/// What Go's linker marks every program with is there without Go, too.
#[test]
fn go_is_refused_before_main_and_the_randomizer_disturbs_it() {
    let place = Workplace::new();
    let marked = "#include <stdlib.h>\n__attribute__((section(\".go.buildinfo\"), used)) static const char mark[32] = \"Go buildinf:\";\n\
                  int main(void) { abort(); }\n";
    is_refused_as_go(&place, &build(&place, marked, &[]));
    if !is_here("go", false) {
        return;
    }
    let source = "package main\nimport (\"fmt\"; \"sync\"; \"time\")\nfunc main() {\n\
        var w sync.WaitGroup; var m sync.Mutex; n := 0\n\
        for i := 0; i < 4; i++ { w.Add(1); go func() { defer w.Done(); for j := 0; j < 100; j++ { m.Lock(); n++; m.Unlock(); time.Sleep(5 * time.Millisecond) } }() }\n\
        w.Wait(); fmt.Println(n)\n}\n";
    for (name, source) in
        [("plain", source.to_owned()), ("cgo", source.replace("import (", "import \"C\"\nimport ("))]
    {
        let file = place.write(&format!("{name}.go"), &source);
        let program = place.path().join(name).display().to_string();
        let mut go = Command::new("go");
        go.args(["build", "-o", &program]).arg(&file).env("GO111MODULE", "off");
        assert!(go.env("GOCACHE", place.path().join("cache")).status().expect("go starts").success());
        is_refused_as_go(&place, &program);
        let ran = place.waylay(&["randomizer", "--", &program]);
        assert!(ran.code() == Some(0) && ran.stdout.contains("400"), "{ran:#?}");
        assert!(Path::new(&program).exists());
    }
}
