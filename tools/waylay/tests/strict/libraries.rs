//! What a promise about a plugin test says of libraries of the system: those whose accesses conflict are left out, with the place.

use std::process::Command;

use serde_json::Value;

use super::support::{Workplace, list};

/// What a test in C++, whose workers do `body`, is promised without.
fn left_out(data: &str, body: &str) -> Value {
    let place = Workplace::new();
    let source = place.write(
        "probing.cpp",
        &format!(
            "#include <waylay.h>\n#include <mutex>\n#include <string>\n{data}\nWAYLAY_TEST(probe, \"workers share a text\");\n\
             static int32_t probe_main(probe *, waylay_context *) {{ {body} return WAYLAY_OK; }}\n\
             WAYLAY_TESTS(\"probing\", test(probe));\n"
        ),
    );
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
    let built = Command::new("g++")
        .args(["-std=c++17", "-g", "-O1", "-shared", "-fPIC", "-pthread", "-I", include, "-o"])
        .args([&place.path().join("libprobing.so"), &source])
        .output()
        .expect("g++ is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = 's'\nmode = 'strict'\nruns = 300\n[[scenario.test]]\nplugin = 'probing'\nworkers = 2\n",
    );
    let ran = place.run(0, &["--seed", "0x5eed"]);
    let guarantee = ran.test("probing", "probe")["strict"]["guarantee"].clone();
    assert!(guarantee["runs"].as_u64() > Some(0), "{guarantee:#}");
    guarantee["leaves_out"].clone()
}

/// Everything that the library touches is of one thread, or under one lock.
#[test]
fn a_library_whose_accesses_do_not_conflict_is_no_reason_to_promise_less() {
    let left_out = left_out(
        "static std::mutex lock; static std::string text;",
        "std::string own = \"what only this worker has\"; own.append(\", and more of it\");\n\
         std::lock_guard<std::mutex> guard(lock); text.assign(\"what all of them have, one after the other\");",
    );
    assert_eq!(list(&left_out), &[] as &[Value], "{left_out:#}");
}

#[test]
fn a_library_whose_accesses_conflict_is_left_out_with_the_place() {
    let left_out = left_out("static std::string text;", "text.clear(); text.append(\"x\");");
    assert_eq!(left_out[0]["reason"], "libraries", "{left_out:#}");
    let place = left_out[0]["places"][0].as_str().unwrap_or_default();
    assert!(place.starts_with("libstdc++.so.6 (") && place.ends_with(')'), "{left_out:#}");
}
