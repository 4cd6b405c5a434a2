//! Small C programs with known bugs, and how they are built and explored.

use std::process::Command;

use serde_json::Value;

use super::{Ran, Workplace};

/// A thread may use what the main thread has not made yet.
pub(crate) const ORDER: &str = r"
#include <pthread.h>
#include <stdlib.h>
static int *p;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *user(void *x) { pthread_mutex_lock(&m); *p = 2; pthread_mutex_unlock(&m); return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, user, 0);
    pthread_mutex_lock(&m); p = malloc(4); *p = 1; pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}";

/// Two threads take two locks in opposite order.
pub(crate) const LOCKS: &str = r"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *x) {
    pthread_mutex_lock(&a); pthread_mutex_lock(&b); pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return x;
}
static void *second(void *x) {
    pthread_mutex_lock(&b); pthread_mutex_lock(&a); pthread_mutex_unlock(&a); pthread_mutex_unlock(&b); return x;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, first, 0); pthread_create(&u, 0, second, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    return 0;
}";

/// Two threads that lose an increment; what the main thread makes of it is put in.
pub(crate) fn counter(verdict: &str) -> String {
    format!(
        r#"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *x) {{
    pthread_mutex_lock(&m); int v = n; pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m); n = v + 1; pthread_mutex_unlock(&m);
    return x;
}}
int main(void) {{
    pthread_t t, u;
    pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    {verdict}
}}"#
    )
}

/// Compiles a program into the folder.
pub(crate) fn build(place: &Workplace, source: &str, options: &[&str]) -> String {
    let file = place.write("program.c", source);
    let program = place.path().join("program");
    let built = Command::new("gcc")
        .args(["-std=gnu17", "-g", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(file)
        .args(options)
        .output()
        .expect("gcc is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// Explores it with a fixed seed.
pub(crate) fn explore(place: &Workplace, options: &[&str], program: &str) -> Ran {
    let mut arguments = vec!["explore", "--json"];
    if !options.contains(&"--seed") {
        arguments.extend(["--seed", "7"]);
    }
    arguments.extend(options);
    arguments.extend(["--", program]);
    place.waylay(&arguments)
}

/// The object that a command printed.
pub(crate) fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}
