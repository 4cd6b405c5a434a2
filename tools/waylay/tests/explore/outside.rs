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

/// What is awaited answers when the file is there: a child, another process at a socket, or a thread that libc makes for itself and
/// that computes meanwhile.
const SLOW: &str = r#"
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static sem_t answered;
static void *other(void *x) { return x; }
static void computes(union sigval unused) {
    (void)unused;
    while (access(getenv("ANSWER"), F_OK)) {}
    sem_post(&answered);
}
int main(void) {
    const char *what = getenv("WHAT");
    char byte;
    pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0);
    if (!strcmp(what, "child")) {
        FILE *child = popen("until test -e \"$ANSWER\"; do :; done; echo x", "r");
        return read(fileno(child), &byte, 1) != 1 || pclose(child);
    }
    if (!strcmp(what, "peer")) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT")))};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        return connect(fd, (struct sockaddr *)&to, sizeof to) || read(fd, &byte, 1) != 1;
    }
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    int (*create)(clockid_t, struct sigevent *, timer_t *) = dlsym(libc, "timer_create");
    int (*set)(timer_t, int, const struct itimerspec *, struct itimerspec *) = dlsym(libc, "timer_settime");
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = computes};
    struct itimerspec soon = {.it_value = {0, 1000000}};
    timer_t timer;
    if (create(CLOCK_MONOTONIC, &event, &timer) || set(timer, 0, &soon, 0)) return 2;
    return sem_wait(&answered);
}"#;

#[test]
fn who_is_late_because_the_world_is_slow_is_at_a_limit() {
    let place = Workplace::new();
    let program = build(&place, SLOW, &[]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = format!("PORT={}", listener.local_addr().expect("known").port());
    let answer = place.path().join("answer");
    let named = format!("ANSWER={}", answer.display());
    for what in ["child", "peer", "thread"] {
        let chosen = format!("WHAT={what}");
        let limits = ["--runs", "1", "--timeout", "400ms", "--env", &chosen, "--env", &port, "--env", &named];
        let ran = explore(&place, &limits, &program);
        let seen = json(&ran);
        assert_eq!((ran.status.code(), &seen["limit_reached"]), (Some(2), &1.into()), "{what}: {ran:#?}");
        if what != "child" {
            continue;
        }
        let strict = explore(&place, &[&limits[..], &["--limit-is-failure"]].concat(), &program);
        let found = &json(&strict)["found"][0];
        assert_eq!(
            (strict.status.code(), &found["kind"]),
            (Some(1), &"livelock".into()),
            "{what}: {strict:#?}"
        );
        let text = found["what"].as_str().expect("a text");
        assert!(text.ends_with("it waits for something outside the schedule"), "{what}: {text}");
    }
    std::fs::write(&answer, "").expect("a folder of ours");
    for what in ["child", "thread"] {
        let ran =
            explore(&place, &["--runs", "1", "--env", &format!("WHAT={what}"), "--env", &named], &program);
        assert_eq!(ran.status.code(), Some(0), "{what}: {ran:#?}");
    }
}

/// A parent and its child share one object of each kind; the child holds, posts or signals it some real time later.
const SHARED: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
struct both {
    sem_t sem; pthread_mutex_t mutex; pthread_cond_t cond; pthread_barrier_t barrier; pthread_rwlock_t rw;
    pthread_spinlock_t spin; volatile int value, told;
};
static struct both *s;
static const char *what;
static int is(const char *name) { return !strcmp(what, name); }
static void *other(void *x) { return x; }
static void nap(int ms) { struct timespec t = { 0, ms * 1000000L }; nanosleep(&t, 0); }
static void held(void) { s->told = 1; nap(20); s->value = 1; }
static void child(void) {
    nap(20);
    if (is("sem")) sem_post(&s->sem);
    if (is("mutex")) { pthread_mutex_lock(&s->mutex); held(); pthread_mutex_unlock(&s->mutex); }
    if (is("robust")) { pthread_mutex_lock(&s->mutex); held(); }
    if (is("cond")) {
        pthread_mutex_lock(&s->mutex); s->value = 1; pthread_cond_signal(&s->cond); pthread_mutex_unlock(&s->mutex);
    }
    if (is("barrier")) { s->value = 1; pthread_barrier_wait(&s->barrier); }
    if (is("rwlock")) { pthread_rwlock_wrlock(&s->rw); held(); pthread_rwlock_unlock(&s->rw); }
    if (is("spin")) { pthread_spin_lock(&s->spin); held(); pthread_spin_unlock(&s->spin); }
    if (is("sleep")) s->value = 1;
    _exit(0);
}
int main(void) {
    what = getenv("WHAT");
    s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(&s->sem, 1, 0);
    pthread_mutexattr_t m; pthread_mutexattr_init(&m); pthread_mutexattr_setpshared(&m, 1);
    if (is("robust")) pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->mutex, &m);
    pthread_condattr_t c; pthread_condattr_init(&c); pthread_condattr_setpshared(&c, 1);
    pthread_cond_init(&s->cond, &c);
    pthread_barrierattr_t b; pthread_barrierattr_init(&b); pthread_barrierattr_setpshared(&b, 1);
    pthread_barrier_init(&s->barrier, &b, 2);
    pthread_rwlockattr_t r; pthread_rwlockattr_init(&r); pthread_rwlockattr_setpshared(&r, 1);
    pthread_rwlock_init(&s->rw, &r);
    pthread_spin_init(&s->spin, 1);
    pthread_t t; pthread_create(&t, 0, other, 0);
    if (is("nobody")) sem_wait(&s->sem);
    pid_t number = is("vfork") ? vfork() : fork();
    if (number == 0) { if (is("vfork")) _exit(0); child(); }
    if (is("sem")) assert(sem_wait(&s->sem) == 0);
    if (is("timed")) {
        struct timespec until; clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 30000000; until.tv_sec += until.tv_nsec / 1000000000; until.tv_nsec %= 1000000000;
        assert(sem_timedwait(&s->sem, &until) == -1 && errno == ETIMEDOUT);
    }
    if (is("mutex") || is("robust")) {
        while (!s->told) nap(1);
        assert(pthread_mutex_lock(&s->mutex) == (is("robust") ? EOWNERDEAD : 0) && s->value);
    }
    if (is("cond")) {
        pthread_mutex_lock(&s->mutex);
        while (!s->value) pthread_cond_wait(&s->cond, &s->mutex);
        pthread_mutex_unlock(&s->mutex);
    }
    if (is("barrier")) { pthread_barrier_wait(&s->barrier); assert(s->value); }
    if (is("rwlock")) { while (!s->told) nap(1); pthread_rwlock_rdlock(&s->rw); assert(s->value); }
    if (is("spin")) { while (!s->told) nap(1); pthread_spin_lock(&s->spin); assert(s->value); }
    // Far more than the child needs, and less than a run may take.
    if (is("sleep")) { nap(900); assert(s->value); }
    pthread_join(t, 0);
    int status; assert(waitpid(number, &status, 0) == number && status == 0);
    return 0;
}"#;

#[test]
fn what_is_shared_with_a_child_is_waited_for_outside() {
    let place = Workplace::new();
    let program = build(&place, SHARED, &[]);
    for what in ["sem", "timed", "mutex", "robust", "cond", "barrier", "rwlock", "spin", "sleep", "vfork"] {
        let variable = format!("WHAT={what}");
        let runs = if what == "sleep" { 1 } else { 3 };
        let ran = explore(&place, &["--runs", &runs.to_string(), "--env", &variable], &program);
        let summary = json(&ran);
        assert_eq!(
            (ran.status.code(), &summary["partly_controlled"]),
            (Some(0), &runs.into()),
            "{what}: {ran:#?}"
        );
        assert!(ran.stderr.contains("beside the schedule: fork starts a process"), "{what}: {ran:#?}");
    }
    // Nobody else has such an object before the first process is started.
    let ran = explore(&place, &["--runs", "2", "--env", "WHAT=nobody"], &program);
    let summary = json(&ran);
    assert_eq!(
        (&summary["kind"], &summary["partly_controlled"]),
        (&"deadlock".into(), &0.into()),
        "{ran:#?}"
    );
    assert_eq!(summary["found"][0]["confirmed"], true, "{ran:#?}");
}

#[test]
fn however_a_process_is_started_the_run_is_partly_controlled() {
    let source = r#"
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
extern char **environ;
static void *other(void *x) { return x; }
int main(void) {
    const char *how = getenv("HOW");
    pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0);
    char *words[] = { "true", 0 }; pid_t child; int status = -1;
    if (!strcmp(how, "system")) status = system("true");
    if (!strcmp(how, "popen")) status = pclose(popen("true", "r"));
    if (!strcmp(how, "posix_spawn") && !posix_spawn(&child, "/bin/true", 0, 0, words, environ)) waitpid(child, &status, 0);
    if (!strcmp(how, "posix_spawnp") && !posix_spawnp(&child, "true", 0, 0, words, environ)) waitpid(child, &status, 0);
    return status;
}"#;
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    for how in ["system", "popen", "posix_spawn", "posix_spawnp"] {
        let ran = explore(&place, &["--runs", "2", "--env", &format!("HOW={how}")], &program);
        assert_eq!(
            (ran.status.code(), &json(&ran)["partly_controlled"]),
            (Some(0), &2.into()),
            "{how}: {ran:#?}"
        );
        assert!(ran.stderr.contains(&format!("beside the schedule: {how} starts a process")), "{ran:#?}");
    }
}

#[test]
fn threads_of_libc_are_named_where_there_is_one_of_the_program() {
    let source =
        ASYNCHRONOUS.replace("pthread_create(&t, 0, other, 0); pthread_join(t, 0);", "(void)t; (void)other;");
    let place = Workplace::new();
    let program = build(&place, &source.replace("abort();", "return 0;"), &[]);
    let ran = explore(&place, &["--runs", "3"], &program);
    let said =
        "one thread that is under control (aio_write makes libc start threads of its own) in every run";
    assert!(ran.status.code() == Some(2) && ran.stderr.contains(said), "{ran:#?}");
}

#[test]
fn who_synchronises_by_sleeping_is_told_of_the_option_for_it() {
    let source = r"
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static volatile int ready;
static volatile sig_atomic_t told;
static void tells(int number) { told = number; }
static void *makes(void *x) { sched_yield(); ready = 1; return x; }
int main(void) {
    pthread_t thread; pthread_create(&thread, 0, makes, 0); (void)tells;
    { sleep(1); }
    assert(ready);
    return pthread_join(thread, 0);
}";
    let waits = "sem_t never; sem_init(&never, 0, 0); struct timespec t; clock_gettime(CLOCK_REALTIME, &t); t.tv_sec++;
        assert(sem_timedwait(&never, &t) == -1);";
    let alarms = "signal(SIGALRM, tells); alarm(1); while (!told) sched_yield();";
    let place = Workplace::new();
    for way in ["sleep(1);", waits, alarms] {
        let program = build(&place, &source.replace("sleep(1);", way), &[]);
        let ran = explore(&place, &["--runs", "100"], &program);
        let hint = json(&ran)["found"][0]["hint"].as_str().unwrap_or_default().to_owned();
        assert!(hint.contains("--idle-timeouts") && ran.stderr.contains(&hint), "{way}: {ran:#?}");
        let ran = explore(&place, &["--runs", "600", "--idle-timeouts"], &program);
        assert_eq!(ran.status.code(), Some(0), "{way}: {ran:#?}");
    }
}

/// The C++ library locks only where libc does not say that there is one thread; a process with threads in advance says it
/// as long as a forked one does.
#[test]
fn a_restored_process_has_one_thread_until_it_creates_another() {
    let source = r"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
static void *other(void *x) { return x; }
int main(void) {
    if (!__libc_single_threaded) { sched_yield(); exit(3); }
    pthread_t t; pthread_create(&t, 0, other, 0);
    if (__libc_single_threaded) exit(4);
    return pthread_join(t, 0);
}";
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    let ran = explore(&place, &["--runs", "120", "--restart", "snapshot"], &program);
    let summary = json(&ran);
    assert!(ran.status.code() == Some(0) && summary["restored"].as_u64() > Some(90), "{ran:#?}");
    assert!(!ran.stderr.contains("FAULT"), "{ran:#?}");
}

/// Somebody kills what runs are forked from, several times in one run: it is started again, and nothing is lost.
#[test]
fn a_fork_server_that_is_killed_again_and_again_is_started_again() {
    let place = Workplace::new();
    let kills = place.path().join("kills");
    let program = format!(
        r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void *other(void *x) {{ return x; }}
int main(void) {{
    FILE *kills = fopen("{}", "a");
    fseek(kills, 0, SEEK_END);
    if (ftell(kills) < 3) {{ fputc('k', kills); fclose(kills); kill(getppid(), SIGKILL); pause(); }}
    pthread_t t; pthread_create(&t, 0, other, 0);
    return pthread_join(t, 0);
}}"#,
        kills.display()
    );
    let program = build(&place, &program, &[]);
    let ran = explore(&place, &["--runs", "5", "--restart", "fork"], &program);
    assert_eq!((ran.status.code(), &json(&ran)["runs"]), (Some(0), &5.into()), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(kills).expect("written").len(), 3);
    assert_eq!(running_in(&place), Vec::<i32>::new());
}
