/* Litmus tests from the literature: which final states are there? The name of one is defined on the command line, and how it
   accesses memory: PLAIN, VOLATILE or ATOMIC. Each run appends the final state, registers and memory, to the file that
   LITMUS names. The main thread is the first of the test. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined ATOMIC
static _Atomic int x, y, z;
#define ST(at, value) atomic_store_explicit(&at, value, memory_order_release)
#define LD(at) atomic_load_explicit(&at, memory_order_acquire)
#elif defined VOLATILE
static volatile int x, y, z;
#define ST(at, value) (at = (value))
#define LD(at) (at)
#else
static int x, y, z;
/* The compiler must not change the order either. */
#define ST(at, value) (at = (value), ({ __asm__ volatile("" ::: "memory"); }))
#define LD(at) ({ __asm__ volatile("" ::: "memory"); int value = at; __asm__ volatile("" ::: "memory"); value; })
#endif
#define FENCE __asm__ volatile("mfence" ::: "memory")
#define XCHG(at, value) __atomic_exchange_n((int *)&at, value, __ATOMIC_SEQ_CST)
#define LOCKED __asm__ volatile("lock; addl $0, (%%rsp)" ::: "memory", "cc")

static int a, b, c, d;
#define NONE ((void)0)
#define P2 NONE
#define P3 NONE

#if defined SB
#define P0 ST(x, 1); a = LD(y)
#define P1 ST(y, 1); b = LD(x)
#elif defined SB_mfences
#define P0 ST(x, 1); FENCE; a = LD(y)
#define P1 ST(y, 1); FENCE; b = LD(x)
#elif defined SB_locked
#define P0 ST(x, 1); LOCKED; a = LD(y)
#define P1 ST(y, 1); LOCKED; b = LD(x)
#elif defined SB_one_mfence
#define P0 ST(x, 1); FENCE; a = LD(y)
#define P1 ST(y, 1); b = LD(x)
#elif defined SB_xchgs
#define P0 c = XCHG(x, 1); a = LD(y)
#define P1 d = XCHG(y, 1); b = LD(x)
#elif defined SB_rfi
#define P0 ST(x, 1); a = LD(x); b = LD(y)
#define P1 ST(y, 1); c = LD(y); d = LD(x)
#elif defined MP
#define P0 ST(x, 1); ST(y, 1)
#define P1 a = LD(y); b = LD(x)
#elif defined LB
#define P0 a = LD(x); ST(y, 1)
#define P1 b = LD(y); ST(x, 1)
#elif defined S
#define P0 ST(x, 2); ST(y, 1)
#define P1 a = LD(y); ST(x, 1)
#elif defined R
#define P0 ST(x, 1); ST(y, 1)
#define P1 ST(y, 2); a = LD(x)
#elif defined R_mfence
#define P0 ST(x, 1); ST(y, 1)
#define P1 ST(y, 2); FENCE; a = LD(x)
#elif defined W22
#define P0 ST(x, 1); ST(y, 2)
#define P1 ST(y, 1); ST(x, 2)
#elif defined CoRR
#define P0 ST(x, 1)
#define P1 a = LD(x); b = LD(x)
#elif defined CoWW
#define P0 ST(x, 1); ST(x, 2)
#define P1 a = LD(x); b = LD(x)
#elif defined n5
#define P0 ST(x, 1); a = LD(x)
#define P1 ST(x, 2); b = LD(x)
#elif defined n6
#define P0 ST(x, 1); a = LD(x); b = LD(y)
#define P1 ST(y, 2); ST(x, 2)
#elif defined n6_mfence
#define P0 ST(x, 1); a = LD(x); FENCE; b = LD(y)
#define P1 ST(y, 2); ST(x, 2)
#elif defined WRC
#define THREADS 3
#define P0 ST(x, 1)
#define P1 a = LD(x); ST(y, 1)
#undef P2
#define P2 b = LD(y); c = LD(x)
#elif defined RWC
#define THREADS 3
#define P0 ST(x, 1)
#define P1 a = LD(x); b = LD(y)
#undef P2
#define P2 ST(y, 1); c = LD(x)
#elif defined ISA2
#define THREADS 3
#define P0 ST(x, 1); ST(y, 1)
#define P1 a = LD(y); ST(z, 1)
#undef P2
#define P2 b = LD(z); c = LD(x)
#elif defined IRIW
#define THREADS 4
#define P0 ST(x, 1)
#define P1 ST(y, 1)
#undef P2
#define P2 a = LD(x); b = LD(y)
#undef P3
#define P3 c = LD(y); d = LD(x)
#endif
#ifndef THREADS
#define THREADS 2
#endif

static void *p1(void *p) { P1; return p; }
static void *p2(void *p) { P2; return p; }
static void *p3(void *p) { P3; return p; }
static void *(*const routines[])(void *) = {p1, p2, p3};

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 1; i < THREADS; i++) pthread_create(&threads[i], NULL, routines[i - 1], NULL);
    P0;
    for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
    char line[80];
    int length = snprintf(line, sizeof line, "a=%d b=%d c=%d d=%d x=%d y=%d z=%d\n", a, b, c, d, x, y, z);
    int file = open(getenv("LITMUS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    return write(file, line, (size_t)length) != length;
}
