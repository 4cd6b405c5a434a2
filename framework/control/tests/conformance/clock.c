// Clocks, sleeping and timers.
#include "case.h"
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>

static long nanoseconds(struct timespec t) { return t.tv_sec * 1000000000 + t.tv_nsec; }
static long now(clockid_t clock) {
    struct timespec t;
    IS(clock_gettime(clock, &t), 0);
    return nanoseconds(t);
}
static atomic_int done;

#define CLOCK(name)                                                  \
    CASE(name##_goes_forward, "clock_gettime") {                     \
        long before = now(name), after = now(name);                  \
        HOLDS(before >= 0 && after >= before);                       \
    }
CLOCK(CLOCK_REALTIME)
CLOCK(CLOCK_MONOTONIC)
CLOCK(CLOCK_PROCESS_CPUTIME_ID)
CLOCK(CLOCK_THREAD_CPUTIME_ID)
CLOCK(CLOCK_MONOTONIC_RAW)
CLOCK(CLOCK_REALTIME_COARSE)
CLOCK(CLOCK_MONOTONIC_COARSE)
CLOCK(CLOCK_BOOTTIME)
CLOCK(CLOCK_TAI)
CASE(clocks_that_do_not_exist, "clock_gettime clock_nanosleep") {
    struct timespec t = {0, 1};
    FAILS(clock_gettime(9999, &t), EINVAL);
    FAILS(clock_gettime(10, &t), EINVAL);
    FAILS(clock_gettime(-1000, &t), EINVAL);
    t = (struct timespec){0, 1};
    IS(clock_nanosleep(9999, 0, &t, 0), EINVAL);
    IS(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, 0), EINVAL);
    IS(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &t, 0), ENOTSUP);
    IS(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &t, 0), ENOTSUP);
}
CASE(clocks_agree, "gettimeofday time timespec_get clock") {
    struct timeval v;
    struct timespec t;
    IS(gettimeofday(&v, 0), 0);
    time_t seconds = time(0), stored;
    HOLDS(seconds >= v.tv_sec && seconds - v.tv_sec < 3600);
    HOLDS(time(&stored) == stored);
    IS(timespec_get(&t, TIME_UTC), TIME_UTC);
    IS(timespec_get(&t, 99), 0);
    HOLDS(clock() >= 0);
}

#define SLEEP(name, functions, call)                       \
    CASE(name##_takes_time, functions) {                   \
        long before = now(CLOCK_MONOTONIC);                \
        IS(call, 0);                                       \
        HOLDS(now(CLOCK_MONOTONIC) - before >= 1000000);   \
    }
static int sleeps(clockid_t clock, int flags) {
    struct timespec t = {0, 1000000};
    if (flags) t = in_ms(clock, 1);
    return clock_nanosleep(clock, flags, &t, 0);
}
static int sleeps_a_little(void) {
    struct timespec t = {0, 1000000};
    return nanosleep(&t, 0);
}
static int thread_sleeps(void) {
    struct timespec t = {0, 1000000};
    return thrd_sleep(&t, 0);
}
SLEEP(nanosleep, "nanosleep", sleeps_a_little())
SLEEP(usleep, "usleep", usleep(1000))
SLEEP(thrd_sleep, "thrd_sleep", thread_sleeps())
SLEEP(sleep_by_monotonic, "clock_nanosleep", sleeps(CLOCK_MONOTONIC, 0))
SLEEP(sleep_by_realtime, "clock_nanosleep", sleeps(CLOCK_REALTIME, 0))
SLEEP(sleep_by_boottime, "clock_nanosleep", sleeps(CLOCK_BOOTTIME, 0))
SLEEP(sleep_until_monotonic, "clock_nanosleep", sleeps(CLOCK_MONOTONIC, TIMER_ABSTIME))
SLEEP(sleep_until_realtime, "clock_nanosleep", sleeps(CLOCK_REALTIME, TIMER_ABSTIME))
CASE(sleeping_for_no_time, "nanosleep clock_nanosleep sleep usleep") {
    struct timespec none = {0, 0}, past = in_ms(CLOCK_MONOTONIC, -5);
    IS(nanosleep(&none, 0), 0);
    IS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, 0), 0);
    IS(sleep(0), 0);
    IS(usleep(0), 0);
}
CASE(sleeping_for_bad_times, "nanosleep clock_nanosleep thrd_sleep") {
    struct timespec bad[] = {{0, 1000000000}, {0, -1}, {-1, 0}};
    for (int i = 0; i < 3; i++) {
        FAILS(nanosleep(&bad[i], 0), EINVAL);
        IS(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad[i], 0), EINVAL);
        HOLDS(thrd_sleep(&bad[i], 0) < -1);
    }
}

// Each sleeps for a long time and is interrupted; by the schedule's leave the time may be over before.
static struct timespec rest;
static int sleeps_long(void) {
    struct timespec t = {100, 0};
    return nanosleep(&t, &rest) == 0 ? 0 : errno;
}
static int sleeps_long_by_clock(void) {
    struct timespec t = {100, 0};
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &rest);
}
static int sleeps_long_until(void) {
    struct timespec t = in_ms(CLOCK_MONOTONIC, 100000);
    rest = (struct timespec){50, 0};
    int result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &rest);
    IS(rest.tv_sec, 50);
    return result;
}
static int sleeps_seconds(void) {
    rest = (struct timespec){sleep(100), 0};
    return rest.tv_sec ? EINTR : 0;
}
static int sleeps_microseconds(void) {
    rest = (struct timespec){50, 0};
    return usleep(900000000) == 0 ? 0 : errno;
}
static int thread_sleeps_long(void) {
    struct timespec t = {100, 0};
    int result = thrd_sleep(&t, &rest);
    return result == -1 ? EINTR : result;
}
static int result;
static void *sleeps_in_thread(void *call) {
    rest = (struct timespec){0, 0};
    result = ((int (*)(void))call)();
    done = 1;
    return 0;
}
static void interrupt_sleep(int (*call)(void), int flags) {
    handle(SIGUSR1, flags);
    done = 0;
    pthread_t thread = start(sleeps_in_thread, call);
    poke(thread, SIGUSR1, &done);
    joined(thread);
    HOLDS(result == EINTR || result == 0);
    if (result == EINTR) HOLDS(rest.tv_sec >= 1 && rest.tv_sec <= 100 && rest.tv_nsec < 1000000000);
}
#define INTERRUPTED_SLEEP(name, functions, call)                                           \
    CASE(name##_is_interrupted, functions) { interrupt_sleep(call, 0); }                   \
    CASE(name##_is_not_restarted, functions) { interrupt_sleep(call, SA_RESTART); }
INTERRUPTED_SLEEP(long_nanosleep, "nanosleep", sleeps_long)
INTERRUPTED_SLEEP(long_clock_nanosleep, "clock_nanosleep", sleeps_long_by_clock)
INTERRUPTED_SLEEP(long_sleep_until, "clock_nanosleep", sleeps_long_until)
INTERRUPTED_SLEEP(long_sleep, "sleep", sleeps_seconds)
INTERRUPTED_SLEEP(long_usleep, "usleep", sleeps_microseconds)
INTERRUPTED_SLEEP(long_thrd_sleep, "thrd_sleep", thread_sleeps_long)

static void *sleeps_blocking(void *unused) {
    block(SIG_BLOCK, SIGUSR1);
    struct timespec t = {0, 3000000};
    IS(nanosleep(&t, 0), 0);
    return unused;
}
CASE(blocked_signals_interrupt_no_sleep, "nanosleep pthread_kill") {
    handle(SIGUSR1, 0);
    pthread_t thread = start(sleeps_blocking, 0);
    usleep(500);
    for (int i = 0; i < 3; i++) pthread_kill(thread, SIGUSR1);
    joined(thread);
}
static void *sleeps_unharmed(void *unused) {
    struct timespec t = {0, 3000000};
    IS(nanosleep(&t, 0), 0);
    return unused;
}
CASE(ignored_signals_interrupt_no_sleep, "nanosleep pthread_kill") {
    signal(SIGUSR1, SIG_IGN);
    pthread_t thread = start(sleeps_unharmed, 0);
    for (int i = 0; i < 3; i++) pthread_kill(thread, SIGUSR1), usleep(300);
    joined(thread);
}
static void *sleeps_for_ever(void *unused) {
    for (;;) sleep(1000);
    return unused;
}
CASE(sleeping_is_a_cancellation_point, "sleep pthread_cancel") {
    pthread_t thread = start(sleeps_for_ever, 0);
    usleep(500);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
}

CASE(alarm_interrupts_a_longer_sleep, "alarm sleep") {
    handle(SIGALRM, 0);
    alarm(1);
    // The schedule may let a second pass before the sleep begins.
    unsigned left = sleep(1000);
    HOLDS(left <= 1000);
    HOLDS(handled >= 1);
    IS(alarm(0), 0);
}
CASE(timer_interrupts_a_longer_sleep, "setitimer nanosleep") {
    handle(SIGALRM, SA_RESTART);
    struct itimerval often = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};
    struct timespec t = {1000, 0}, left = {0, 0};
    IS(setitimer(ITIMER_REAL, &often, 0), 0);
    FAILS(nanosleep(&t, &left), EINTR);
    HOLDS(handled >= 1);
    IS(setitimer(ITIMER_REAL, &none, 0), 0);
    HOLDS(left.tv_sec >= 1 && left.tv_sec <= 1000);
}
CASE(timer_comes_again, "setitimer getitimer pause") {
    handle(SIGALRM, 0);
    struct itimerval often = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}}, old;
    IS(setitimer(ITIMER_REAL, &often, 0), 0);
    for (int i = 0; i < 3; i++) FAILS(pause(), EINTR);
    HOLDS(handled >= 3);
    IS(getitimer(ITIMER_REAL, &old), 0);
    IS(old.it_interval.tv_usec, 2000);
    IS(setitimer(ITIMER_REAL, &none, &old), 0);
    IS(getitimer(ITIMER_REAL, &old), 0);
    HOLDS(old.it_value.tv_sec == 0 && old.it_value.tv_usec == 0);
}
CASE(timer_arguments_are_checked, "setitimer getitimer") {
    struct itimerval bad = {{0, 0}, {0, 1000000}}, negative = {{0, 0}, {-1, 0}}, old;
    FAILS(setitimer(ITIMER_REAL, &bad, 0), EINVAL);
    FAILS(setitimer(ITIMER_REAL, &negative, 0), EINVAL);
    FAILS(setitimer(99, &bad, 0), EINVAL);
    FAILS(getitimer(99, &old), EINVAL);
}
CASE(alarm_says_what_is_left, "alarm") {
    handle(SIGALRM, 0);
    IS(alarm(1000), 0);
    HOLDS(alarm(0) <= 1000);
    IS(alarm(0), 0);
}

static timer_t made(int signal) {
    struct sigevent event = {.sigev_notify = signal ? SIGEV_SIGNAL : SIGEV_NONE, .sigev_signo = signal};
    event.sigev_value.sival_int = 77;
    timer_t timer;
    IS(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    return timer;
}
CASE(posix_timer_arguments_are_checked, "timer_create timer_settime timer_gettime timer_delete timer_getoverrun") {
    timer_t timer;
    struct sigevent event = {.sigev_notify = 99};
    FAILS(timer_create(9999, 0, &timer), EINVAL);
    FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    timer = made(0);
    struct itimerspec bad = {{0, 0}, {0, 2000000000}}, negative = {{0, 0}, {-1, 0}}, bad_interval = {{0, 2000000000}, {1, 0}}, old;
    FAILS(timer_settime(timer, 0, &bad, 0), EINVAL);
    FAILS(timer_settime(timer, 0, &negative, 0), EINVAL);
    FAILS(timer_settime(timer, 0, &bad_interval, 0), EINVAL);
    IS(timer_gettime(timer, &old), 0);
    IS(old.it_value.tv_sec, 0);
    IS(timer_getoverrun(timer), 0);
    IS(timer_delete(timer), 0);
}
CASE(posix_timer_shows_what_is_left, "timer_settime timer_gettime") {
    timer_t timer = made(SIGRTMIN);
    struct itimerspec long_time = {{7, 0}, {1000, 0}}, old;
    IS(timer_settime(timer, 0, &long_time, 0), 0);
    IS(timer_gettime(timer, &old), 0);
    // The schedule may let the whole time pass.
    HOLDS(old.it_value.tv_sec <= 1000);
    IS(old.it_interval.tv_sec, 7);
    struct itimerspec none = {{0, 0}, {0, 0}};
    IS(timer_settime(timer, 0, &none, &old), 0);
    HOLDS(old.it_value.tv_sec <= 1000);
    IS(timer_gettime(timer, &old), 0);
    IS(old.it_value.tv_sec, 0);
    IS(timer_delete(timer), 0);
}
static int value_seen, code_seen, most_overruns;
static void on_information(int number, siginfo_t *information, void *unused) {
    value_seen = information->si_value.sival_int;
    code_seen = information->si_code;
    // Of the signal that is handled: whoever asks later may be told of the next one.
    if (information->si_overrun > most_overruns) most_overruns = information->si_overrun;
    handled++;
}
static void handle_information(int number) {
    struct sigaction action = {.sa_sigaction = on_information, .sa_flags = SA_SIGINFO};
    IS(sigaction(number, &action, 0), 0);
    handled = value_seen = code_seen = 0;
}
CASE(posix_timer_interrupts_and_brings_its_value, "timer_settime nanosleep") {
    handle_information(SIGRTMIN);
    timer_t timer = made(SIGRTMIN);
    struct itimerspec often = {{0, 3000000}, {0, 3000000}};
    struct timespec t = {1000, 0};
    IS(timer_settime(timer, 0, &often, 0), 0);
    FAILS(nanosleep(&t, 0), EINTR);
    HOLDS(handled >= 1);
    IS(value_seen, 77);
    IS(code_seen, SI_TIMER);
    IS(timer_delete(timer), 0);
}
CASE(posix_timer_by_absolute_time, "timer_settime nanosleep") {
    handle_information(SIGRTMIN);
    timer_t timer = made(SIGRTMIN);
    struct itimerspec often = {{0, 3000000}, in_ms(CLOCK_MONOTONIC, 3)};
    struct timespec t = {1000, 0};
    IS(timer_settime(timer, TIMER_ABSTIME, &often, 0), 0);
    FAILS(nanosleep(&t, 0), EINTR);
    HOLDS(handled >= 1);
    IS(timer_delete(timer), 0);
}
CASE(posix_timer_counts_what_it_could_not_tell, "timer_getoverrun timer_settime") {
    handle_information(SIGRTMIN);
    block(SIG_BLOCK, SIGRTMIN);
    timer_t timer = made(SIGRTMIN);
    most_overruns = 0;
    struct itimerspec often = {{0, 1000000}, {0, 1000000}}, none = {{0, 0}, {0, 0}};
    IS(timer_settime(timer, 0, &often, 0), 0);
    struct timespec t = {0, 20500000};
    IS(nanosleep(&t, 0), 0);
    IS(handled, 0);
    block(SIG_UNBLOCK, SIGRTMIN);
    HOLDS(handled >= 1);
    HOLDS(most_overruns >= 15);
    HOLDS(timer_getoverrun(timer) >= 0);
    IS(timer_settime(timer, 0, &none, 0), 0);
    IS(timer_delete(timer), 0);
}
CASE(posix_timer_that_is_gone, "timer_delete timer_settime timer_gettime") {
    timer_t timer = made(0);
    struct itimerspec none = {{0, 0}, {0, 0}};
    IS(timer_delete(timer), 0);
    FAILS(timer_delete(timer), EINVAL);
    FAILS(timer_settime(timer, 0, &none, 0), EINVAL);
    FAILS(timer_gettime(timer, &none), EINVAL);
}
static sem_t called;
static void calls_back(union sigval value) {
    IS(value.sival_int, 5);
    sem_post(&called);
}
CASE(posix_timer_calls_a_function, "timer_create timer_settime") {
    sem_init(&called, 0, 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = calls_back};
    event.sigev_value.sival_int = 5;
    timer_t timer;
    IS(timer_create(CLOCK_REALTIME, &event, &timer), 0);
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    IS(timer_settime(timer, 0, &soon, 0), 0);
    IS(sem_wait(&called), 0);
    IS(timer_delete(timer), 0);
}
CASE(timer_descriptor, "timerfd_create timerfd_settime timerfd_gettime read") {
    FAILS(timerfd_create(9999, 0), EINVAL);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = {{0, 0}, {0, 1000000}}, bad = {{0, 0}, {0, 2000000000}}, old;
    FAILS(timerfd_settime(fd, 0, &bad, 0), EINVAL);
    FAILS(timerfd_settime(-1, 0, &soon, 0), EBADF);
    FAILS(timerfd_gettime(-1, &old), EBADF);
    IS(timerfd_settime(fd, 0, &soon, 0), 0);
    unsigned long ends = 0;
    IS(read(fd, &ends, sizeof ends), 8);
    IS(ends, 1);
    IS(timerfd_gettime(fd, &old), 0);
    IS(old.it_value.tv_nsec, 0);
    close(fd);
    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    FAILS(read(fd, &ends, sizeof ends), EAGAIN);
    close(fd);
}
