//! What a promise says of libraries of the system: those whose accesses conflict are left out, with the place; others are no
//! reason to promise less.

use std::process::Command;

use serde_json::Value;

use crate::support::Workplace;
use crate::support::small::{build, explore, json};

/// What a program in C++ is promised, for bugs of depth 1, without.
fn left_out(source: &str) -> Value {
    let place = Workplace::new();
    let file = place.write("program.cpp", source);
    let program = place.path().join("program");
    let built = Command::new("g++")
        .args(["-std=c++17", "-g", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(file)
        .output()
        .expect("g++ is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = explore(&place, &["--runs", "200"], program.to_str().expect("a plain path"));
    assert_eq!(ran.code(), Some(0), "{ran:#?}");
    let summary = json(&ran);
    assert!(summary["guarantee"]["runs"].as_u64() > Some(0), "{summary:#}");
    summary["guarantee"]["leaves_out"].clone()
}

/// Everything that the library touches is of one thread, or under one lock.
#[test]
fn a_library_whose_accesses_do_not_conflict_is_no_reason_to_promise_less() {
    let guarded = r#"
#include <map>
#include <mutex>
#include <string>
#include <thread>
static std::mutex m;
static std::map<std::string, int> known;
static void add(int by) {
    for (int i = 0; i < 3; i++) {
        std::lock_guard<std::mutex> guard(m);
        known["a key that is on the heap, number " + std::to_string(i)] += by;
    }
}
int main() {
    std::thread a(add, 1), b(add, 2);
    a.join();
    b.join();
    return known.size() != 3;
}
"#;
    let of_one_thread = r#"
#include <mutex>
#include <sstream>
#include <thread>
static std::mutex m;
static int n;
int main() {
    std::thread other([] { std::lock_guard<std::mutex> guard(m); n++; });
    std::ostringstream out;
    out << "written by " << 1 << " thread";
    other.join();
    return out.str().size() != 19;
}
"#;
    for source in [guarded, of_one_thread] {
        assert_eq!(left_out(source), Value::Array(Vec::new()));
    }
}

#[test]
fn a_library_whose_accesses_conflict_is_left_out_with_the_place() {
    let shared = r#"
#include <string>
#include <thread>
static std::string text;
int main() {
    std::thread a([] { text.append("x"); }), b([] { text.append("y"); });
    a.join();
    b.join();
    return text.size() > 2;
}
"#;
    let left_out = left_out(shared);
    assert_eq!(left_out[0]["reason"], "libraries", "{left_out:#}");
    let place = left_out[0]["places"][0].as_str().unwrap_or_default();
    assert!(place.starts_with("libstdc++.so.6 (") && place.ends_with(')'), "{left_out:#}");
}

/// The same where the program does not name the library, but loads it.
#[test]
fn a_library_that_is_loaded_by_name_is_left_out_where_its_accesses_conflict() {
    let program = |both: &str| {
        format!(
            r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
/* A text as the library has it: where it is, how long it is, and room for a short one. */
struct text {{ char *at; unsigned long bytes; char room[16]; }};
static struct text *(*append)(struct text *, const char *, unsigned long);
static struct text texts[2] = {{ {{ texts[0].room, 0, "" }}, {{ texts[1].room, 0, "" }} }};
static void *first(void *x) {{ append(&texts[0], "x", 1); return x; }}
static void *second(void *x) {{ append(&texts[{both}], "y", 1); return x; }}
int main(void) {{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    if (!library) return 9;
    *(void **)&append = dlsym(library, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm");
    if (!append) return 9;
    pthread_t t, u;
    pthread_create(&t, 0, first, 0);
    pthread_create(&u, 0, second, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}}
"#
        )
    };
    let place = Workplace::new();
    let [shared, own] = ["0", "1"].map(|both| {
        let ran = explore(&place, &["--runs", "200"], &build(&place, &program(both), &[]));
        assert_eq!(ran.code(), Some(0), "{ran:#?}");
        json(&ran)["guarantee"]["leaves_out"].clone()
    });
    assert_eq!(shared[0]["reason"], "libraries", "{shared:#}");
    let place = shared[0]["places"][0].as_str().unwrap_or_default();
    assert!(place.starts_with("libstdc++.so.6 ("), "{shared:#}");
    assert_eq!(own, Value::Array(Vec::new()));
}
