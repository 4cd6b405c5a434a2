// A program of conformance cases. Every case looks at what functions of libc do and says what is not as documented; the
// program is run freely, where the kernel and libc answer for themselves, and under control.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *name, *functions;
    void (*body)(void);
} Case;

// A case and the functions it is about. Those of `only` end the process, so that each has one to itself.
#define CASE(name, functions) CASE_IN(cases, name, functions)
#define ONLY(name, functions) CASE_IN(only, name, functions)
#define CASE_IN(list, name, functions)                                                         \
    static void name(void);                                                                    \
    static const Case case_##name = {#name, functions, name};                                  \
    static const Case *const entry_##name __attribute__((section(#list), used)) = &case_##name; \
    static void name(void)

static const char *current = "";
static atomic_int complaints;

static void complain(int line, const char *what, long got, long wanted) {
    char text[400];
    int len = snprintf(text, sizeof text, "%s, line %d: %s is %ld, not %ld\n", current, line, what, got, wanted);
    complaints++;
    if (write(1, text, len) < 0) abort();
}

// The call returns that.
#define IS(call, wanted)                                             \
    do {                                                             \
        long got_ = (long)(call), wanted_ = (long)(wanted);          \
        if (got_ != wanted_) complain(__LINE__, #call, got_, wanted_); \
    } while (0)
// The call returns -1 and sets errno.
#define FAILS(call, error)                                                        \
    do {                                                                          \
        errno = 0;                                                                \
        long got_ = (long)(call), error_ = errno;                                 \
        if (got_ != -1) complain(__LINE__, #call, got_, -1);                      \
        else if (error_ != (error)) complain(__LINE__, "errno of " #call, error_, error); \
    } while (0)
#define HOLDS(condition) IS(!!(condition), 1)

static inline pthread_t start(void *(*routine)(void *), void *argument) {
    pthread_t thread;
    IS(pthread_create(&thread, 0, routine, argument), 0);
    return thread;
}
static inline void *joined(pthread_t thread) {
    void *result = 0;
    IS(pthread_join(thread, &result), 0);
    return result;
}

static inline struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec < 0) t.tv_nsec += 1000000000, t.tv_sec--;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    return t;
}
#define BAD_TIME {time(0) + 100, 2000000000}
#define BEFORE_ALL_TIME {-1, 0}

// How many handlers have run, and the last one's signal.
static atomic_int handled, last_signal;
static void on_signal(int number) {
    last_signal = number;
    handled++;
}
static inline void handle(int number, int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    IS(sigaction(number, &action, 0), 0);
    handled = 0;
    last_signal = 0;
}
static inline sigset_t set_of(int number) {
    sigset_t set;
    sigemptyset(&set);
    if (number) sigaddset(&set, number);
    return set;
}
static inline void block(int how, int number) {
    sigset_t set = set_of(number);
    IS(pthread_sigmask(how, &set, 0), 0);
}

// Sends a signal again and again until the flag is set: whoever is to be interrupted may not wait yet.
static inline void poke(pthread_t thread, int number, atomic_int *done) {
    while (!*done) {
        IS(pthread_kill(thread, number), 0);
        usleep(500);
    }
}
// Sends a signal until handlers have run that often.
static inline void poke_times(pthread_t thread, int number, int times) {
    while (handled < times) {
        pthread_kill(thread, number);
        usleep(500);
    }
}

extern const Case *const __start_cases[] __attribute__((weak)), *const __stop_cases[] __attribute__((weak));
extern const Case *const __start_only[] __attribute__((weak)), *const __stop_only[] __attribute__((weak));

static void *does_nothing(void *argument) { return argument; }

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--list")) {
        for (const Case *const *c = __start_cases; c < __stop_cases; c++) printf("case %s: %s\n", (*c)->name, (*c)->functions);
        for (const Case *const *c = __start_only; c < __stop_only; c++) printf("only %s: %s\n", (*c)->name, (*c)->functions);
        return 0;
    }
    setvbuf(stdout, 0, _IONBF, 0);
    // A program of one thread is none of ours.
    joined(start(does_nothing, 0));
    for (const Case *const *c = __start_cases; c < __stop_cases; c++) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++) wanted |= !strcmp(argv[i], (*c)->name);
        if (!wanted) continue;
        current = (*c)->name;
        // Where a run comes to its end before the program does, this says which case it was.
        dprintf(2, "%s\n", current);
        (*c)->body();
    }
    for (const Case *const *c = __start_only; argc > 1 && c < __stop_only; c++)
        if (!strcmp(argv[1], (*c)->name)) (*c)->body();
    return complaints != 0;
}
