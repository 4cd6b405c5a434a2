//! What a program does beside the schedule: it holds nobody up, is said, and makes no failure of a correct program.

use std::time::{Duration, Instant};

use crate::running_in;
use crate::support::small::{build, explore, json};
use crate::support::{PATIENCE, Workplace};

/// Requests whose ends are told by threads that glibc makes for that: new ones come while evidence is taken.
const ASYNCHRONOUS: &str = r#"
#include <aio.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *other(void *x) { return x; }
static void done(union sigval value) { (void)value; }
int main(void) {
    char name[] = "aioXXXXXX"; int fd = mkstemp(name); unlink(name);
    static char data[8]; static struct aiocb requests[64];
    for (int i = 0; i < 64; i++) {
        struct aiocb *request = requests + i;
        request->aio_fildes = fd; request->aio_buf = data; request->aio_nbytes = 5; request->aio_offset = i * 5;
        request->aio_sigevent.sigev_notify = SIGEV_THREAD;
        request->aio_sigevent.sigev_notify_function = done;
        if (aio_write(request)) return 2;
    }
    pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0);
    abort();
}"#;

#[test]
fn evidence_of_a_process_that_goes_on_making_threads_comes_to_an_end() {
    let place = Workplace::new();
    let program = build(&place, ASYNCHRONOUS, &[]);
    for _ in 0..3 {
        let ran = explore(&place, &["--runs", "8"], &program);
        assert_eq!((ran.status.code(), &json(&ran)["kind"]), (Some(1), &"crash".into()), "{ran:#?}");
    }
    assert_eq!(running_in(&place), Vec::<i32>::new());
}

#[test]
fn one_signal_ends_an_exploration_in_the_middle_of_a_run() {
    let place = Workplace::new();
    let endless = r"
#include <pthread.h>
static volatile long n;
static void *spin(void *x) { for (;;) n++; return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0); return pthread_join(t, 0); }";
    let program = build(&place, endless, &[]);
    for way in ["fork", "snapshot"] {
        let options = ["explore", "--timeout", "1000s", "--restart", way, "--", &program];
        let mut explorer = place.start(&options);
        let until = |what: &str, reached: &mut dyn FnMut() -> bool| {
            let began = Instant::now();
            while !reached() {
                assert!(began.elapsed() < PATIENCE, "{what}: {:?}", running_in(&place));
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        until("the server and its child", &mut || running_in(&place).len() >= 2);
        explorer.ask_to_end();
        until("its end", &mut || explorer.child.try_wait().unwrap().is_some());
        until("nothing is left", &mut || running_in(&place).is_empty());
    }
}

#[test]
fn a_long_output_is_compared_as_a_whole() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
static void *other(void *x) { return x; }
int main(void) {
    pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0);
    for (int i = 0; i < 150000; i++) printf("line %07d of many\n", i);
    return 0;
}"#;
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    let output = std::process::Command::new(&program).output().unwrap().stdout;
    assert!(output.len() > 3 << 20, "longer than what is kept of an output that nobody compares");
    let reference = place.path().join("reference");
    for (change, code) in [("", 0), ("x", 1)] {
        std::fs::write(&reference, [output.as_slice(), change.as_bytes()].concat()).unwrap();
        let options = ["--runs", "3", "--no-calls", "--expect-stdout", reference.to_str().unwrap()];
        let ran = explore(&place, &options, &program);
        assert_eq!(ran.status.code(), Some(code), "{change:?}: {ran:#?}");
    }
    std::fs::write(&reference, &output[..2 << 20]).unwrap();
    let ran = explore(&place, &["--runs", "1", "--expect-stdout", reference.to_str().unwrap()], &program);
    assert_eq!(ran.status.code(), Some(1), "more than the reference: {ran:#?}");
}

/// The thread sleeps some two thousand times for real before the child has written: without an excuse that is three
/// times the limit, and without a look at the world it would go on for ever.
#[test]
fn who_only_sleeps_while_the_world_is_awaited_reaches_no_limit() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *maintains(void *x) {
    for (int over = 0; !over; usleep(100)) { pthread_mutex_lock(&m); over = done; pthread_mutex_unlock(&m); }
    return x;
}
int main(void) {
    pthread_t t; pthread_create(&t, 0, maintains, 0);
    FILE *child = popen("sleep 0.2; echo ready", "r");
    char text[8]; ssize_t length = read(fileno(child), text, sizeof text);
    pthread_mutex_lock(&m); done = 1; pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return length == 6 && pclose(child) == 0 ? 0 : 3;
}"#;
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    for timeouts in [&[][..], &["--idle-timeouts"]] {
        let ran = explore(&place, &[&["--runs", "4", "--max-steps", "2000"], timeouts].concat(), &program);
        assert_eq!((ran.status.code(), &json(&ran)["limit_reached"]), (Some(0), &0.into()), "{ran:#?}");
    }
}
