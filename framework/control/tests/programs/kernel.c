/* A program that calls the kernel by itself, as runtimes with locks of their own do. What it waits for only comes from its own
   threads, so a schedule that does not know of these calls stands still. With "deadlock", two locks are taken in two orders; with
   "blocked", all of it happens with every signal blocked. */
#include "check.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return result;
}

/* Two bytes between two places that are jumped to: no jump fits. */
static long call_in_a_trap(long number, long a, long b, long c)
{
    long result = number;
    int rounds = 1;
    register long fourth __asm__("r10") = 0;
    __asm__ volatile("jmp 2f\n 1: syscall\n 2: decl %1\n jns 1b"
                     : "+a"(result), "+r"(rounds)
                     : "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

typedef struct {
    atomic_int word; /* 0 free, 1 taken, 2 taken and somebody waits */
} own_lock;

static void take(own_lock *lock, int in_a_trap)
{
    int free = 0;
    if (atomic_compare_exchange_strong(&lock->word, &free, 1)) return;
    while (atomic_exchange(&lock->word, 2) != 0) {
        long result = in_a_trap ? call_in_a_trap(SYS_futex, (long)&lock->word, FUTEX_WAIT_PRIVATE, 2)
                                : call(SYS_futex, (long)&lock->word, FUTEX_WAIT_PRIVATE, 2, 0);
        CHECK(result == 0 || result == -EAGAIN);
    }
}

static void give(own_lock *lock)
{
    if (atomic_exchange(&lock->word, 0) == 2) CHECK(call(SYS_futex, (long)&lock->word, FUTEX_WAKE_PRIVATE, 1, 0) >= 0);
}

static own_lock first, second;
static int sum, opposite, blocked;

/* What the kernel keeps is kept: every other register, the flags, and errno, which is not the kernel's. */
static void kept(void)
{
    long result, before = 0x1122334455667788;
    int word = 3;
    errno = 77;
    register long fourth __asm__("r10") = 0;
    register long beside __asm__("r12") = before;
    __asm__ volatile("syscall"
                     : "=a"(result), "+r"(beside)
                     : "a"((long)SYS_futex), "D"(&word), "S"((long)FUTEX_WAIT_PRIVATE), "d"(4L), "r"(fourth)
                     : "rcx", "r11", "memory");
    CHECK(result == -EAGAIN && beside == before && errno == 77);
    CHECK(call(SYS_getpid, 0, 0, 0, 0) == getpid());
    CHECK(call(SYS_gettid, 0, 0, 0, 0) == gettid());
    CHECK(call(SYS_close, -1, 0, 0, 0) == -EBADF && errno == 77);
    CHECK(call(SYS_sched_yield, 0, 0, 0, 0) == 0);
}

static void *work(void *name)
{
    long me = (long)name;
    if (blocked) {
        sigset_t all, now;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        pthread_sigmask(SIG_SETMASK, NULL, &now);
        CHECK(sigismember(&now, SIGUSR1) == 1);
    }
    kept();
    for (int round = 0; round < 4; round++) {
        own_lock *outer = me && opposite ? &second : &first, *inner = me && opposite ? &first : &second;
        take(outer, round % 2);
        take(inner, round % 2);
        sum++;
        give(inner);
        give(outer);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    opposite = count > 1 && strcmp(arguments[1], "deadlock") == 0;
    blocked = count > 1 && strcmp(arguments[1], "blocked") == 0;
    /* Before there is a second thread, and before anything is patched for it. */
    if (count > 1 && strcmp(arguments[1], "early") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
    }
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK(sum == 8);
    return 0;
}
