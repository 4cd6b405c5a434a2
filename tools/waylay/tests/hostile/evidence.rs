//! Stacks, block and dump of a failure are of one moment, also of tests that start and end threads all the time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Workplace;

/// Three threads start others and wait for them, without a pause; the worker fails beside them.
const CHURN: &str = r#"
static void *nothing(void *unused) { return unused; }
static void *churn(void *unused) {
  pthread_t id;
  for (;;) if (pthread_create(&id, 0, nothing, 0) == 0) pthread_join(id, 0);
  return unused;
}
static volatile int depth;
__attribute__((noinline)) static int overflow(int level) {
  volatile char room[4096];
  room[0] = (char)level;
  depth = level;
  return level < 0 ? 0 : overflow(level + 1) + room[0];
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int32_t iterate(probe *self, waylay_context *worker) {
  static int churning;
  pthread_t id;
  for (; churning < 3; churning++) pthread_create(&id, 0, churn, 0);
  usleep(2000);
  switch (WAY) {
    case 0: waylay_fail(self->services, worker, "on purpose"); return WAYLAY_FAILED;
    case 1: *(volatile int *)8 = 1; break;
    case 2: return overflow(0);
    default: pthread_mutex_lock(&lock); pthread_mutex_lock(&lock);
  }
  return WAYLAY_OK;
}"#;

/// A thread in a dump, and how much of its stack there is.
fn threads_in_dump(path: &Path) -> Vec<(u32, u32)> {
    const THREAD_LIST: u32 = 3;
    const THREAD: usize = 48;
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (streams, directory) = (word(8) as usize, word(12) as usize);
    let list = (0..streams).map(|i| directory + 12 * i).find(|at| word(*at) == THREAD_LIST).expect("a list");
    let list = word(list + 8) as usize;
    (0..word(list) as usize).map(|i| list + 4 + THREAD * i).map(|at| (word(at), word(at + 32))).collect()
}

/// The threads whose stacks are shown: `thread 12 "name": …` or `3 threads: 12 "name", 13 "name": …`.
fn threads_in_text(text: &str) -> BTreeSet<u32> {
    let headings = text.lines().filter(|line| line.starts_with("thread ") || line.contains(" threads: "));
    let names = headings.flat_map(|line| line.split(&[' ', ','][..]).collect::<Vec<_>>());
    let mut found = BTreeSet::new();
    let mut last = None;
    for word in names.filter(|word| !word.is_empty()) {
        if let (true, Some(number)) = (word.starts_with('"'), last) {
            found.insert(number);
        }
        last = word.parse().ok();
    }
    found
}

#[test]
fn stacks_and_dump_are_of_one_moment() {
    let place = Workplace::new();
    // Of a hang beside threads that work nobody can say that all wait.
    let ways: [(&str, &[&str], u64); 4] = [
        ("fails", &["assert"], 30),
        ("crashes", &["crash"], 12),
        ("overflows", &["crash"], 8),
        ("hangs", &["deadlock", "livelock", "slow"], 4),
    ];
    let mut config = "[defaults]\nworkers = 1\nleaks = false\nhang-timeout = \"300ms\"\n\
                      [evidence]\ndumps-per-signature = 1000\n"
        .to_owned();
    for (way, (name, _, most)) in ways.iter().enumerate() {
        let beginning = format!("#define WAY {way}\n{}", crate::support::C_BEGINNING);
        place.compile_whole(name, &format!("{beginning}{CHURN}\n"));
        config += &format!(
            "[[scenario]]\nname = \"{name}\"\nduration = \"200s\"\n[[scenario.test]]\nplugin = \"{name}\"\n\
             max-failures = {most}\n"
        );
    }
    place.write("waylay.toml", &config);
    let ran = place.run(1, &[]);
    let mut looked_at = 0;
    for (name, kinds, most) in ways {
        for failure in
            ran.failures().iter().filter(|failure| failure.json["plugin"].to_string().contains(name))
        {
            assert!(kinds.contains(&failure.kind()), "{name}: {}", ran.stderr);
            assert_eq!(failure.json["gaps"], serde_json::json!([]), "{name}: {:#}", failure.json);
            let again =
                fs::read_dir(&failure.folder).expect("a folder").map(|entry| entry.expect("ours").path());
            let places: Vec<PathBuf> =
                std::iter::once(failure.folder.clone()).chain(again.filter(|path| path.is_dir())).collect();
            assert!(places.len() as u64 <= most);
            for place in places {
                let text = fs::read_to_string(place.join("stacks.txt")).expect("stacks");
                let dumped = threads_in_dump(&place.join("dump.dmp"));
                let ids: BTreeSet<u32> = dumped.iter().map(|(id, _)| *id).collect();
                assert_eq!(threads_in_text(&text), ids, "{name}\n{text}");
                // The worker, the host's own thread, and the three that start others.
                assert!(ids.len() >= 5, "{name}: {ids:?}\n{text}");
                assert!(dumped.iter().all(|(_, stack)| *stack > 0), "{name}: {dumped:?}\n{text}");
                assert!(!text.contains("could not be looked at"), "{name}\n{text}");
                looked_at += 1;
            }
        }
    }
    assert!(looked_at >= 50, "{looked_at} failures\n{}", ran.stderr);
}
