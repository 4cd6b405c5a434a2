// Threads that the library does not manage, by name of the argument: they run beside the schedule. Exits 0, or ends in
// a deadlock where said.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static sem_t done;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER, asked = PTHREAD_COND_INITIALIZER;
static int answer, question;

static void *takes_part(void *unused) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&guard);
        sched_yield();
        pthread_mutex_unlock(&guard);
    }
    return unused;
}

// libc makes the thread of these functions by itself, inside its own timer_create, which is called past everybody else's.
static void start_outsider(void (*routine)(union sigval)) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    int (*create)(clockid_t, struct sigevent *, timer_t *) = dlsym(libc, "timer_create");
    int (*set)(timer_t, int, const struct itimerspec *, struct itimerspec *) = dlsym(libc, "timer_settime");
    CHECK(create && set);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = routine};
    timer_t timer;
    CHECK(create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec soon = {.it_value = {0, 20000000}};
    CHECK(set(timer, 0, &soon, 0) == 0);
}

static void posts(union sigval unused) {
    pthread_mutex_lock(&guard);
    pthread_mutex_unlock(&guard);
    sem_post(&done);
}

static void answers(union sigval unused) {
    pthread_mutex_lock(&guard);
    while (!question) pthread_cond_wait(&asked, &guard);
    answer = 42;
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&guard);
}

static void sits(union sigval unused) {
    pthread_mutex_lock(&held);
    sem_post(&done);
    struct timespec nap = {0, 30000000};
    nanosleep(&nap, 0);
    pthread_mutex_unlock(&held);
}

// A futex without libc: nobody sees the call.
static int word;
static long inline_futex(int operation, int value) {
    long result;
    register long timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(202L), "D"(&word), "S"((long)operation), "d"((long)value), "r"(timeout)
                     : "rcx", "r11", "memory");
    return result;
}

static void *waits_inline(void *unused) {
    while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST)) inline_futex(0, 0);
    return unused;
}

static void *wakes_inline(void *unused) {
    for (int i = 0; i < 3; i++) sched_yield();
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    inline_futex(1, 1);
    return unused;
}

// A stream over a pipe: libc reads inside a function that is not under control.
static FILE *from, *to;
static void *reads_stream(void *unused) {
    char line[20];
    CHECK(fgets(line, sizeof line, from) && !strcmp(line, "hello\n"));
    return unused;
}

static void *writes_stream(void *unused) {
    for (int i = 0; i < 3; i++) sched_yield();
    CHECK(fputs("hello\n", to) >= 0 && fflush(to) == 0);
    return unused;
}

static void two(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t a, b;
    CHECK(pthread_create(&a, 0, first, 0) == 0 && pthread_create(&b, 0, second, 0) == 0);
    CHECK(pthread_join(a, 0) == 0 && pthread_join(b, 0) == 0);
}

// Each takes one mutex, waits until the other has the other one, and wants that.
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static sem_t has_one, has_other;
static void *first_one(void *unused) {
    pthread_mutex_lock(&one);
    sem_post(&has_one);
    sem_wait(&has_other);
    pthread_mutex_lock(&other);
    return unused;
}
static void *first_other(void *unused) {
    pthread_mutex_lock(&other);
    sem_post(&has_other);
    sem_wait(&has_one);
    pthread_mutex_lock(&one);
    return unused;
}

// A thread that counts until it is cancelled, and the processor time of the process, which no library stands in front of.
static void *counts(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    sem_post(&done);
    for (unsigned long n = 0;; n++) __asm__ volatile("" : "+r"(n));
    return unused;
}
static long used_milliseconds(void) {
    struct timespec used;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(228L), "D"((long)CLOCK_PROCESS_CPUTIME_ID), "S"(&used)
                     : "rcx", "r11", "memory");
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (!strcmp(argv[1], "inline")) {
        two(waits_inline, wakes_inline);
        return 0;
    }
    if (!strcmp(argv[1], "stream")) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        from = fdopen(ends[0], "r");
        to = fdopen(ends[1], "w");
        two(reads_stream, writes_stream);
        return 0;
    }
    sem_init(&done, 0, 0);
    if (!strcmp(argv[1], "cancelled")) {
        pthread_t counter;
        void *result;
        CHECK(pthread_create(&counter, 0, counts, 0) == 0);
        sem_wait(&done);
        long before = used_milliseconds();
        for (int i = 0; i < 3; i++) sched_yield();
        CHECK(pthread_cancel(counter) == 0 && pthread_join(counter, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(used_milliseconds() - before < 300);
        return 0;
    }
    if (!strcmp(argv[1], "circle")) {
        // What libc makes its threads in stays, and does nothing.
        start_outsider(posts);
        sem_wait(&done);
        two(first_one, first_other);
        return 0;
    }
    pthread_t thread;
    if (!strcmp(argv[1], "semaphore")) {
        start_outsider(posts);
        CHECK(pthread_create(&thread, 0, takes_part, 0) == 0);
        sem_wait(&done);
        CHECK(pthread_join(thread, 0) == 0);
    } else if (!strcmp(argv[1], "condition")) {
        start_outsider(answers);
        CHECK(pthread_create(&thread, 0, takes_part, 0) == 0);
        pthread_mutex_lock(&guard);
        question = 1;
        pthread_cond_signal(&asked);
        while (!answer) pthread_cond_wait(&answered, &guard);
        pthread_mutex_unlock(&guard);
        CHECK(pthread_join(thread, 0) == 0);
    } else if (!strcmp(argv[1], "mutex")) {
        start_outsider(sits);
        sem_wait(&done);
        pthread_mutex_lock(&held);
        pthread_mutex_unlock(&held);
    } else {
        return 2;
    }
    return 0;
}
