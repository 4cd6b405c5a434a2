//! The modules of a crate have an order: none needs, by whatever way, a module that needs it. Else no file can be read before
//! the others, and a change anywhere may need a change everywhere.
//!
//! Looked at are the children of every module, each with all that is below it as one: `use` and paths that lead from one child
//! into another are edges. What a module takes from its own children or from its parent is none: they are one thing in
//! several files. A name that another module passes on (`pub use`) leads to where it is defined.

use super::modules::Crate;
use super::order::{Graph, knots, shortest_cycle};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Groups of modules that need each other in a circle, by crate and the module whose children they are. This list may only
/// shrink: a group that is smaller than here fails as one that is larger does.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("framework/accesses/src/lib.rs", "", "access delayed process verdict watch"),
    (
        "framework/control/src/lib.rs",
        "",
        "binding fork_server heap instrument interpose me message real runtime snapshot switch sys",
    ),
    ("framework/control/src/lib.rs", "heap", "guard quarantine"),
    ("framework/control/src/lib.rs", "instrument", "access copies delay outward patch watch"),
    ("framework/control/src/lib.rs", "instrument::patch", "counter kernel stub table"),
    ("framework/control/src/lib.rs", "interpose", "futex kernel_call"),
    (
        "framework/control/src/lib.rs",
        "runtime",
        "blocked calls carrier descriptors handover idling lifecycle logical outside patience platform pool preempt session signals timers watcher",
    ),
    ("framework/control/src/lib.rs", "snapshot", "keeper signals trap"),
    ("framework/control-windows/src/lib.rs", "", "access interpose me patch runtime watch"),
    ("framework/control-windows/src/lib.rs", "interpose", "handle timer"),
    ("framework/control-windows/src/lib.rs", "patch", "demand module"),
    ("framework/control-windows/src/lib.rs", "patch", "site stub"),
    (
        "framework/control-windows/src/lib.rs",
        "runtime",
        "leaving lifecycle logical outside platform pool preempt session",
    ),
    (
        "framework/evidence/src/lib.rs",
        "",
        "crash dump memory_map module origin signature snapshot stack symbol sys unwind",
    ),
    (
        "framework/explore/src/lib.rs",
        "",
        "batch budget cause confirm explain explorer findings guide held libraries minimize observed oracle program recording restart restored scratch sites streams suite summary sys worker",
    ),
    (
        "framework/host/src/lib.rs",
        "",
        "combine context event factory fatal lifecycle loader plan services shared stage strict sys worker",
    ),
    ("framework/host/src/lib.rs", "sys", "windows windows_calls windows_heap"),
    ("framework/plugin/src/lib.rs", "", "boundary combine context describe hooks shared test worker"),
    (
        "framework/runtime/src/lib.rs",
        "",
        "closing ending handover in_process inspect platform point run token",
    ),
    ("framework/schedule/src/lib.rs", "", "any conversation happened idiom orders portfolio"),
    ("framework/schedule/src/lib.rs", "", "spec spec_text"),
    ("tools/waylay/src/main.rs", "", "aimed explore"),
    ("tools/waylay/src/main.rs", "", "args lots pack run serve shard"),
    ("tools/waylay/src/main.rs", "", "replay replay_strict"),
    ("tools/waylay/src/main.rs", "", "verify verify_program"),
];

/// Crates whose root declares its modules in reading order: each needs only those that come before it.
const IN_READING_ORDER: [&str; 2] = ["framework/driver/src/lib.rs", "framework/findings/src/lib.rs"];

/// Places where one module mentions another, by the two children that they lie in.
type Edges = BTreeMap<(String, String), BTreeSet<String>>;

/// The edges between the children of each module of `of`.
fn edges(of: &Crate, root: &Path) -> BTreeMap<String, Edges> {
    let mut found: BTreeMap<String, Edges> = BTreeMap::new();
    for (from, module) in &of.modules {
        for mention in &module.mentions {
            let to = of.home(&mention.target);
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if from.len() > shared && to.len() > shared {
                let file = mention.file.strip_prefix(root).unwrap_or(&mention.file);
                let place = format!("{}:{}", file.display(), mention.line).replace('\\', "/");
                let ends = (from[shared].clone(), to[shared].clone());
                found.entry(from[..shared].join("::")).or_default().entry(ends).or_default().insert(place);
            }
        }
    }
    found
}

/// Each group of children that need each other in a circle, with a shortest circle in words.
fn circles(edges: &Edges) -> Vec<(String, String)> {
    let mut graph = Graph::new();
    for (from, to) in edges.keys() {
        graph.entry(from.clone()).or_default().insert(to.clone());
        graph.entry(to.clone()).or_default();
    }
    let told = |knot| {
        let circle = shortest_cycle(&graph, &knot);
        let lines = circle.windows(2).map(|pair| {
            let places = &edges[&(pair[0].clone(), pair[1].clone())];
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            format!("    {} needs {}: {}", pair[0], pair[1], places.join(", "))
        });
        (Vec::from_iter(knot).join(" "), lines.collect::<Vec<_>>().join("\n"))
    };
    knots(&graph).into_iter().map(told).collect()
}

/// The root files of all crates of the product.
fn roots(workspace: &Path) -> Vec<PathBuf> {
    let mut crates =
        vec![workspace.join("randomizer"), workspace.join("melting-pot"), workspace.join("service")];
    for group in ["framework", "tools"] {
        let entries = fs::read_dir(workspace.join(group)).expect("a folder");
        crates.extend(entries.map(|entry| entry.expect("readable").path()));
    }
    crates.sort();
    let files = crates.iter().flat_map(|of| ["lib.rs", "main.rs"].map(|name| of.join("src").join(name)));
    files.filter(|file| file.exists()).collect()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

#[test]
fn modules_have_an_order() {
    let workspace = workspace();
    let roots = roots(&workspace);
    assert!(roots.len() > 20, "{} crates", roots.len());
    let (mut wrong, mut used) = (Vec::new(), Vec::new());
    for root in roots {
        let read = Crate::read(&root);
        let name = root.strip_prefix(&workspace).expect("below").to_string_lossy().replace('\\', "/");
        for (parent, edges) in edges(&read, &workspace) {
            for (members, circle) in circles(&edges) {
                let found = (name.clone(), parent.clone(), members.clone());
                let is_known = EXCEPTIONS
                    .iter()
                    .any(|(of, at, who)| (*of, *at, *who) == (&*found.0, &*found.1, &*found.2));
                if is_known {
                    used.push(found);
                } else {
                    wrong.push(format!("(\"{name}\", \"{parent}\", \"{members}\"),\n{circle}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these modules need each other in a circle (crate, parent, members):\n{}",
        wrong.join("\n")
    );
    for &(of, at, who) in EXCEPTIONS {
        let is_used = used.iter().any(|found| (&*found.0, &*found.1, &*found.2) == (of, at, who));
        assert!(is_used, "not needed any more, or smaller now: {of} {at}: {who}");
    }
}

#[test]
fn roots_declare_modules_in_reading_order() {
    let workspace = workspace();
    for root in IN_READING_ORDER {
        let read = Crate::read(&workspace.join(root));
        let order = &read.modules[&Vec::new()].children;
        let place = |name: &String| order.iter().position(|known| known == name);
        let edges = edges(&read, &workspace).remove("").unwrap_or_default();
        let back = edges.iter().filter(|((from, to), _)| place(from) < place(to));
        let back: Vec<String> = back.map(|((from, to), at)| format!("{from} needs {to}: {at:?}")).collect();
        assert!(back.is_empty(), "{root} declares a module before one that it needs:\n{}", back.join("\n"));
    }
}

#[test]
fn paths_are_followed_to_where_things_are_defined() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_crate_with_a_cycle");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("low")).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    write(
        "lib.rs",
        "mod low;\nmod high { pub struct High; }\nmod middle;\npub use low::*;\npub use middle::Middle as M;\n",
    );
    write(
        "low/mod.rs",
        "mod a;\n#[cfg(windows)]\n#[path = \"twin.rs\"]\nmod b;\npub struct Low;\npub use a::A;\n",
    );
    write("low/a.rs", "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::high::High;\n}\n");
    write(
        "low/twin.rs",
        "//! crate::high::High\nuse super::a::{self, A as Other};\nfn f() { crate::M::new(\"crate::high::High\") }\n",
    );
    write(
        "middle.rs",
        "pub struct Middle;\npub(in crate::high) fn f(x: crate::A) {\n    let y = 'x';\n    super::low::g::<Low>();\n}\n",
    );
    let read = Crate::read(&folder.join("lib.rs"));
    assert_eq!(read.modules[&Vec::new()].children, ["low", "high", "middle"]);
    let found = edges(&read, &folder);
    let told: Vec<String> =
        found[""].iter().map(|((from, to), places)| format!("{from} {to} {places:?}")).collect();
    assert_eq!(told, ["low middle {\"low/twin.rs:3\"}", "middle low {\"middle.rs:2\", \"middle.rs:4\"}"]);
    let inside: Vec<&(String, String)> = found["low"].keys().collect();
    assert_eq!(inside, [&("b".to_string(), "a".to_string())]);
    let circles = circles(&found[""]);
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].0, "low middle");
    assert!(circles[0].1.contains("low needs middle: low/twin.rs:3"), "{}", circles[0].1);
}
