// Timers in virtual time: each case ends at once and in the same way whoever switches, however long the timer is.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define HOUR 3600
static volatile sig_atomic_t ends;
static volatile uintptr_t value;

static void on_end(int signal, siginfo_t *info, void *context) {
    (void)context;
    assert(signal == SIGALRM || signal == SIGUSR1);
    if (signal == SIGUSR1) {
        assert(info->si_code == SI_TIMER);
        value = (uintptr_t)info->si_value.sival_ptr;
    }
    ends++;
}

// Ends are counted while somebody waits for them, and at no other time: a timer may end at once.
static sigset_t before;
static void handle(int signal) {
    struct sigaction action = {.sa_sigaction = on_end, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before);
}
static void wait_for_ends(int count) {
    while (ends < count) sigsuspend(&before);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *other(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    for (int i = 0; i < 3; i++) sched_yield();
    return unused;
}

// A sleep until the alarm comes: an hour of nothing.
static void alarmed(void) {
    handle(SIGALRM);
    double begin = now();
    assert(alarm(HOUR) == 0);
    wait_for_ends(1);
    assert(ends == 1 && now() - begin >= HOUR);
    // What is left of an alarm that is stopped, and that a stopped one does not come.
    assert(alarm(HOUR) == 0);
    unsigned left = alarm(0);
    assert(left == 0 || (left > HOUR - 10 && left <= HOUR));
}

// Every ten minutes, three times.
static void interval(void) {
    handle(SIGALRM);
    struct itimerval every = {{600, 0}, {600, 0}}, seen;
    double begin = now();
    assert(setitimer(ITIMER_REAL, &every, 0) == 0);
    wait_for_ends(3);
    assert(now() - begin >= 1800);
    assert(getitimer(ITIMER_REAL, &seen) == 0 && seen.it_interval.tv_sec == 600);
    struct itimerval stop = {0};
    assert(setitimer(ITIMER_REAL, &stop, 0) == 0);
    assert(getitimer(ITIMER_REAL, &seen) == 0 && seen.it_value.tv_sec == 0 && seen.it_value.tv_usec == 0);
}

// A POSIX timer with a value, and one that was set anew before it ended.
static void posix(void) {
    handle(SIGUSR1);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_ptr = (void *)77};
    timer_t timer;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec once = {{0, 0}, {HOUR, 0}}, later = {{0, 0}, {2 * HOUR, 0}}, left;
    double begin = now();
    assert(timer_settime(timer, 0, &once, 0) == 0);
    assert(timer_settime(timer, 0, &later, &left) == 0);
    int early = left.it_value.tv_sec == 0;
    assert(early || left.it_value.tv_sec >= HOUR - 10);
    wait_for_ends(1);
    assert(value == 77 && now() - begin >= (early ? 1 : 2) * HOUR);
    assert(timer_delete(timer) == 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int called;
static void call(union sigval with) {
    pthread_mutex_lock(&lock);
    called += with.sival_int;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

// A timer that calls a function on a thread of its own, which takes part in the schedule.
static void thread(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = call, .sigev_value.sival_int = 5};
    timer_t timer;
    assert(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    struct itimerspec twice = {{HOUR, 0}, {HOUR, 0}};
    assert(timer_settime(timer, 0, &twice, 0) == 0);
    pthread_mutex_lock(&lock);
    while (called < 10) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    assert(timer_delete(timer) == 0);
}

// A timer that is read, and one that is waited for with poll.
static void descriptor(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec once = {{0, 0}, {HOUR, 0}}, left;
    double begin = now();
    assert(fd >= 0 && timerfd_settime(fd, 0, &once, 0) == 0);
    assert(timerfd_gettime(fd, &left) == 0 && (left.it_value.tv_sec == 0 || left.it_value.tv_sec >= HOUR - 10));
    uint64_t count = 0;
    assert(read(fd, &count, sizeof count) == sizeof count && count == 1);
    assert(now() - begin >= HOUR);
    assert(timerfd_settime(fd, 0, &once, 0) == 0);
    struct pollfd set = {fd, POLLIN, 0};
    assert(poll(&set, 1, -1) == 1 && set.revents == POLLIN);
    close(fd);
}

// Everybody blocks the signal but waits for it.
static void *waiter(void *set) {
    int signal = 0;
    assert(sigwait(set, &signal) == 0 && signal == SIGALRM);
    return 0;
}
static void waited(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_t waits;
    pthread_create(&waits, 0, waiter, &set);
    alarm(HOUR);
    pthread_join(waits, 0);
}

// Set and stopped again.
static void stopped(void) {
    alarm(HOUR);
    alarm(0);
}

// A watchdog never bites a program that ends by itself.
static void watchdog(void) {
    alarm(HOUR);
    for (int i = 0; i < 20; i++) sched_yield();
}

// The handler comes after the alarm is set, whenever that ends.
static void handled_late(void) {
    alarm(HOUR);
    sched_yield();
    handle(SIGALRM);
    wait_for_ends(1);
}

// Nothing but the watchdog is left: a deadlock.
static void bitten(void) {
    alarm(HOUR);
    pause();
}

/* The signal comes before anybody waits for it: nobody will send another. */
static void on_lost(int number) { (void)number; }
static void lost_pause(void) {
    signal(SIGUSR1, on_lost);
    pthread_kill(pthread_self(), SIGUSR1);
    pause();
}
static void lost_suspend(void) {
    sigset_t none;
    sigemptyset(&none);
    signal(SIGUSR1, on_lost);
    kill(getpid(), SIGUSR1);
    sigsuspend(&none);
}
static void lost_wait(void) {
    sigset_t set;
    int number;
    signal(SIGUSR1, on_lost);
    raise(SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    sigwait(&set, &number);
}

int main(int argc, char **argv) {
    pthread_t thread_;
    pthread_create(&thread_, 0, other, 0);
    assert(argc == 2);
    struct { const char *name; void (*run)(void); } cases[] = {
        {"alarmed", alarmed}, {"interval", interval}, {"posix", posix},
        {"thread", thread}, {"descriptor", descriptor}, {"waited", waited}, {"stopped", stopped},
        {"watchdog", watchdog}, {"handled_late", handled_late}, {"bitten", bitten},
        {"lost_pause", lost_pause}, {"lost_suspend", lost_suspend}, {"lost_wait", lost_wait},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[1], cases[i].name)) cases[i].run();
    pthread_join(thread_, 0);
    puts("end");
    return 0;
}
