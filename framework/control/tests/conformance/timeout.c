// How long a timed function waits: for ever when it is told to, whatever the number is called, and not at all when the time is over.
#include "case.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>

// The last moment that there is, of absolute times as of lengths, and one whose nanoseconds are those of the kernel's last.
static const struct timespec LAST[] = {{LONG_MAX, 999999999}, {LONG_MAX, 0}, {LONG_MAX / 1000000000, 854775807}};
// Times that are over.
static const struct timespec OVER[] = {{0, 0}, {0, 1}, {1, 999999999}};
#define EACH(times) for (size_t i = 0; i < sizeof times / sizeof *times; i++)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int descriptor;
static atomic_int ready, given;

// Lets the waiter come to its wait, and then has what it waits for.
static void *gives_mutex(void *x) {
    pthread_mutex_lock(&mutex);
    ready = 1;
    usleep(2000);
    pthread_mutex_unlock(&mutex);
    return x;
}
static void *gives_rwlock(void *x) {
    pthread_rwlock_wrlock(&rwlock);
    ready = 1;
    usleep(2000);
    pthread_rwlock_unlock(&rwlock);
    return x;
}
static void *signals(void *x) {
    pthread_mutex_lock(&mutex);
    given = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return x;
}
static void *posts(void *x) {
    usleep(2000);
    sem_post(&semaphore);
    return x;
}
static void *writes(void *x) {
    uint64_t one = 1;
    usleep(2000);
    IS(write(descriptor, &one, 8), 8);
    return x;
}
static void *ends_late(void *x) {
    usleep(2000);
    return x;
}
static void *sets_word(void *word) {
    usleep(2000);
    atomic_store((atomic_int *)word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    return 0;
}
#define WHILE_HELD(giver, call, unlock)       \
    EACH(LAST) {                              \
        ready = 0;                            \
        pthread_t thread = start(giver, 0);   \
        while (!ready) usleep(100);           \
        IS(call, 0);                          \
        IS(unlock, 0);                        \
        joined(thread);                       \
    }
CASE(mutexes_for_ever, "pthread_mutex_timedlock pthread_mutex_clocklock mtx_timedlock") {
    WHILE_HELD(gives_mutex, pthread_mutex_timedlock(&mutex, &LAST[i]), pthread_mutex_unlock(&mutex))
    WHILE_HELD(gives_mutex, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &LAST[i]), pthread_mutex_unlock(&mutex))
}
CASE(rwlocks_for_ever, "pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock") {
    WHILE_HELD(gives_rwlock, pthread_rwlock_timedrdlock(&rwlock, &LAST[i]), pthread_rwlock_unlock(&rwlock))
    WHILE_HELD(gives_rwlock, pthread_rwlock_timedwrlock(&rwlock, &LAST[i]), pthread_rwlock_unlock(&rwlock))
    WHILE_HELD(gives_rwlock, pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &LAST[i]), pthread_rwlock_unlock(&rwlock))
    WHILE_HELD(gives_rwlock, pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &LAST[i]), pthread_rwlock_unlock(&rwlock))
}
#define UNTIL_SIGNALLED(call)                   \
    EACH(LAST) {                                \
        given = 0;                              \
        pthread_mutex_lock(&mutex);             \
        pthread_t thread = start(signals, 0);   \
        while (!given) IS(call, 0);             \
        pthread_mutex_unlock(&mutex);           \
        joined(thread);                         \
    }
CASE(conditions_for_ever, "pthread_cond_timedwait pthread_cond_clockwait") {
    UNTIL_SIGNALLED(pthread_cond_timedwait(&condition, &mutex, &LAST[i]))
    UNTIL_SIGNALLED(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &LAST[i]))
}
CASE(c11_for_ever, "mtx_timedlock cnd_timedwait") {
    mtx_t lock;
    cnd_t never;
    IS(mtx_init(&lock, mtx_timed), thrd_success);
    IS(cnd_init(&never), thrd_success);
    EACH(LAST) {
        IS(mtx_timedlock(&lock, &LAST[i]), thrd_success);
        IS(mtx_unlock(&lock), thrd_success);
    }
    EACH(OVER) {
        IS(mtx_lock(&lock), thrd_success);
        IS(cnd_timedwait(&never, &lock, &OVER[i]), thrd_timedout);
        IS(mtx_unlock(&lock), thrd_success);
    }
    mtx_destroy(&lock);
    cnd_destroy(&never);
}
CASE(semaphores_for_ever, "sem_timedwait sem_clockwait") {
    IS(sem_init(&semaphore, 0, 0), 0);
    EACH(LAST) {
        pthread_t thread = start(posts, 0);
        IS(sem_timedwait(&semaphore, &LAST[i]), 0);
        joined(thread);
        thread = start(posts, 0);
        IS(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &LAST[i]), 0);
        joined(thread);
    }
}
CASE(joins_for_ever, "pthread_timedjoin_np pthread_clockjoin_np") {
    EACH(LAST) {
        void *result;
        IS(pthread_timedjoin_np(start(ends_late, 0), &result, &LAST[i]), 0);
        IS(pthread_clockjoin_np(start(ends_late, 0), &result, CLOCK_MONOTONIC, &LAST[i]), 0);
    }
}
CASE(descriptors_for_ever, "ppoll pselect select epoll_pwait2") {
    uint64_t count;
    descriptor = eventfd(0, 0);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    IS(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event), 0);
    EACH(LAST) {
        struct pollfd one = {descriptor, POLLIN, 0};
        pthread_t thread = start(writes, 0);
        IS(ppoll(&one, 1, &LAST[i], 0), 1);
        IS(read(descriptor, &count, 8), 8);
        joined(thread);
        fd_set reads;
        FD_ZERO(&reads);
        FD_SET(descriptor, &reads);
        thread = start(writes, 0);
        IS(pselect(descriptor + 1, &reads, 0, 0, &LAST[i], 0), 1);
        IS(read(descriptor, &count, 8), 8);
        joined(thread);
        thread = start(writes, 0);
        IS(epoll_pwait2(set, &event, 1, &LAST[i], 0), 1);
        IS(read(descriptor, &count, 8), 8);
        joined(thread);
    }
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(descriptor, &reads);
    struct timeval last = {LONG_MAX, 999999};
    pthread_t thread = start(writes, 0);
    IS(select(descriptor + 1, &reads, 0, 0, &last), 1);
    joined(thread);
    close(set);
    close(descriptor);
}
CASE(futexes_for_ever, "syscall") {
    EACH(LAST) {
        atomic_int word = 0;
        pthread_t thread = start(sets_word, &word);
        while (!word) {
            long waited = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &LAST[i], 0, 0);
            HOLDS(waited == 0 || errno == EAGAIN);
        }
        joined(thread);
        word = 0;
        thread = start(sets_word, &word);
        while (!word) {
            long waited = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &LAST[i], 0, -1);
            HOLDS(waited == 0 || errno == EAGAIN);
        }
        joined(thread);
    }
}
static atomic_int over;
static int sleep_which;
static void *sleeps_for_ever(void *which) {
    const struct timespec *time = &LAST[(long)which % 3];
    switch (sleep_which) {
    case 0: FAILS(nanosleep(time, 0), EINTR); break;
    case 1: IS(clock_nanosleep(CLOCK_MONOTONIC, 0, time, 0), EINTR); break;
    case 2: IS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, 0), EINTR); break;
    case 3: IS(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, time, 0), EINTR); break;
    case 4: HOLDS(thrd_sleep(time, 0) == -1); break;
    default: HOLDS(sleep(UINT_MAX) > 0);
    }
    over = 1;
    return 0;
}
CASE(sleeps_for_ever_end_by_handlers, "nanosleep clock_nanosleep sleep thrd_sleep") {
    handle(SIGUSR1, 0);
    for (sleep_which = 0; sleep_which < 6; sleep_which++) {
        EACH(LAST) {
            over = 0;
            pthread_t thread = start(sleeps_for_ever, (void *)i);
            poke(thread, SIGUSR1, &over);
            joined(thread);
        }
    }
}
static void *waits_for_signal(void *time) {
    sigset_t set = set_of(SIGUSR2);
    return (void *)(long)sigtimedwait(&set, 0, time);
}
CASE(signals_for_ever, "sigtimedwait") {
    block(SIG_BLOCK, SIGUSR2);
    EACH(LAST) {
        pthread_t thread = start(waits_for_signal, (void *)&LAST[i]);
        usleep(2000);
        IS(pthread_kill(thread, SIGUSR2), 0);
        IS(joined(thread), SIGUSR2);
    }
    block(SIG_UNBLOCK, SIGUSR2);
}
CASE(timers_for_ever, "timer_create timer_settime timer_gettime timer_delete timerfd_create timerfd_settime timerfd_gettime setitimer getitimer alarm") {
    handle(SIGALRM, 0);
    EACH(LAST) {
        timer_t timer;
        struct itimerspec set = {.it_interval = LAST[i], .it_value = LAST[i]}, left;
        IS(timer_create(CLOCK_MONOTONIC, 0, &timer), 0);
        IS(timer_settime(timer, 0, &set, 0), 0);
        IS(timer_gettime(timer, &left), 0);
        HOLDS(left.it_value.tv_sec > 1000000000);
        IS(timer_settime(timer, TIMER_ABSTIME, &set, 0), 0);
        usleep(1000);
        IS(timer_delete(timer), 0);
        int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
        uint64_t count;
        IS(timerfd_settime(fd, 0, &set, 0), 0);
        usleep(1000);
        IS(timerfd_gettime(fd, &left), 0);
        HOLDS(left.it_value.tv_sec > 1000000000);
        FAILS(read(fd, &count, 8), EAGAIN);
        IS(timerfd_settime(fd, TFD_TIMER_ABSTIME, &set, 0), 0);
        usleep(1000);
        FAILS(read(fd, &count, 8), EAGAIN);
        close(fd);
    }
    struct itimerval last = {.it_value = {LONG_MAX, 999999}}, none = {0}, left;
    IS(setitimer(ITIMER_REAL, &last, 0), 0);
    usleep(1000);
    IS(getitimer(ITIMER_REAL, &left), 0);
    HOLDS(left.it_value.tv_sec > 1000000000);
    IS(setitimer(ITIMER_REAL, &none, 0), 0);
    IS(alarm(UINT_MAX), 0);
    usleep(1000);
    HOLDS(alarm(0) > 1000000000);
    IS(handled, 0);
}

// What is over ends at once, and what is before all time is no error where a deadline is meant; as a length it is one.
static const struct timespec NEGATIVE[] = {{-1, 0}, {-1, 999999999}, {LONG_MIN, 0}};
CASE(deadlines_that_are_over, "pthread_mutex_timedlock pthread_mutex_clocklock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock sem_timedwait sem_clockwait pthread_cond_timedwait pthread_cond_clockwait clock_nanosleep") {
    IS(sem_init(&semaphore, 0, 0), 0);
    EACH(OVER) {
        ready = 0;
        pthread_t thread = start(gives_mutex, 0);
        while (!ready) usleep(100);
        IS(pthread_mutex_timedlock(&mutex, &OVER[i]) == 0 ? pthread_mutex_unlock(&mutex) : 0, 0);
        joined(thread);
        pthread_mutex_lock(&mutex);
        IS(pthread_cond_timedwait(&condition, &mutex, &OVER[i]), ETIMEDOUT);
        IS(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &OVER[i]), ETIMEDOUT);
        pthread_mutex_unlock(&mutex);
        FAILS(sem_timedwait(&semaphore, &OVER[i]), ETIMEDOUT);
        FAILS(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &OVER[i]), ETIMEDOUT);
        IS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &OVER[i], 0), 0);
        IS(pthread_mutex_timedlock(&mutex, &OVER[i]), 0);
        pthread_mutex_unlock(&mutex);
    }
    EACH(NEGATIVE) {
        pthread_mutex_lock(&mutex);
        IS(pthread_cond_timedwait(&condition, &mutex, &NEGATIVE[i]), ETIMEDOUT);
        pthread_mutex_unlock(&mutex);
        FAILS(sem_timedwait(&semaphore, &NEGATIVE[i]), ETIMEDOUT);
        FAILS(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &NEGATIVE[i]), ETIMEDOUT);
        IS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &NEGATIVE[i], 0), EINVAL);
    }
}
CASE(lengths_that_are_none, "nanosleep ppoll pselect select epoll_pwait2 sigtimedwait poll epoll_wait timer_settime syscall usleep sleep") {
    sigset_t set = set_of(SIGUSR2);
    block(SIG_BLOCK, SIGUSR2);
    const struct timespec zero = {0, 0};
    int epoll = epoll_create1(0), word = 0;
    struct epoll_event event;
    struct timeval negative = {-1, 0}, no_time = {0, 0};
    timer_t timer;
    IS(timer_create(CLOCK_MONOTONIC, 0, &timer), 0);
    EACH(NEGATIVE) {
        struct itimerspec spec = {.it_value = NEGATIVE[i]};
        FAILS(nanosleep(&NEGATIVE[i], 0), EINVAL);
        FAILS(ppoll(0, 0, &NEGATIVE[i], 0), EINVAL);
        FAILS(pselect(0, 0, 0, 0, &NEGATIVE[i], 0), EINVAL);
        FAILS(epoll_pwait2(epoll, &event, 1, &NEGATIVE[i], 0), EINVAL);
        FAILS(sigtimedwait(&set, 0, &NEGATIVE[i]), EINVAL);
        FAILS(timer_settime(timer, 0, &spec, 0), EINVAL);
        FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &NEGATIVE[i], 0, 0), EINVAL);
    }
    FAILS(select(0, 0, 0, 0, &negative), EINVAL);
    IS(timer_delete(timer), 0);
    IS(nanosleep(&zero, 0), 0);
    IS(ppoll(0, 0, &zero, 0), 0);
    IS(pselect(0, 0, 0, 0, &zero, 0), 0);
    IS(select(0, 0, 0, 0, &no_time), 0);
    IS(epoll_pwait2(epoll, &event, 1, &zero, 0), 0);
    FAILS(sigtimedwait(&set, 0, &zero), EAGAIN);
    FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &zero, 0, 0), ETIMEDOUT);
    IS(poll(0, 0, 0), 0);
    IS(epoll_wait(epoll, &event, 1, 0), 0);
    IS(usleep(0), 0);
    IS(sleep(0), 0);
    block(SIG_UNBLOCK, SIGUSR2);
    close(epoll);
}
