/* Code that no compiler was asked to report, with every shape of instruction that is patched: each checks that nothing but
   the order of threads changes. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define ROUNDS 20

static atomic_int count;
static int trapped, plain, locked;
static volatile int lock;
static const char *mode;

/* The carry flag outlives an increment, the overflow flag a fence. */
static int flags_survive(int *at)
{
    int carry = 0, overflow = 0;
    __asm__ volatile("stc\n lock incl (%2)\n setc %b0\n mov $0x7f, %%al\n add $1, %%al\n mfence\n seto %b1"
                     : "+r"(carry), "+r"(overflow)
                     : "r"(at)
                     : "rax", "cc", "memory");
    return carry == 1 && overflow == 1;
}

static int vectors_survive(int *at)
{
    uint64_t in[2] = {0x1122334455667788u, 0x99aabbccddeeff00u}, out[2];
    __asm__ volatile("movups (%0), %%xmm13\n lock incl (%1)\n movups %%xmm13, (%2)"
                     :
                     : "r"(in), "r"(at), "r"(out)
                     : "xmm13", "memory", "cc");
    return memcmp(in, out, sizeof in) == 0;
}

#ifdef WIDE
static int wide_vectors_survive(int *at)
{
    uint64_t in[4] = {1, 2, 3, 4}, out[4];
    if (!__builtin_cpu_supports("avx"))
        return 1;
    __asm__ volatile("vmovups (%0), %%ymm5\n lock incl (%1)\n vmovups %%ymm5, (%2)\n vzeroupper"
                     :
                     : "r"(in), "r"(at), "r"(out)
                     : "xmm5", "memory", "cc");
    return memcmp(in, out, sizeof in) == 0;
}

static int old_floats_survive(int *at)
{
    long double x;
    __asm__ volatile("fldpi\n fld1\n lock incl (%1)\n faddp\n fstpt %0" : "=m"(x) : "r"(at) : "memory", "cc");
    return x > 4.14L && x < 4.15L;
}

static int direction_survives(int *at)
{
    char from[4] = "abc", to[4] = "";
    char *s = from + 3, *d = to + 3;
    long n = 4;
    __asm__ volatile("std\n lock incl (%3)\n rep movsb\n cld" : "+S"(s), "+D"(d), "+c"(n) : "r"(at) : "memory", "cc");
    return strcmp(to, "abc") == 0;
}
#endif

/* Three bytes between two places that are jumped to: no jump fits. */
static void in_a_trap(int *at, int rounds)
{
    __asm__ volatile("jmp 2f\n 1: lock incl (%0)\n 2: decl %1\n jns 1b" : : "r"(at), "r"(rounds) : "memory", "cc");
}

/* A lock that is waited for by a loop. */
static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        while (lock)
            __builtin_ia32_pause();
}

static void *everything(void *x)
{
    static _Thread_local int own;
    int mine = 0;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&count, 1);
        CHECK(flags_survive(&mine));
        CHECK(vectors_survive(&mine));
#ifdef WIDE
        CHECK(wide_vectors_survive(&mine));
        CHECK(old_floats_survive(&mine));
        CHECK(direction_survives(&mine));
#endif
        take();
        locked++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
        __atomic_fetch_add(&own, 1, __ATOMIC_RELAXED);
        CHECK(own == i + 1);
    }
    in_a_trap(&trapped, ROUNDS);
    return x;
}

static void *lose(void *x)
{
    if (!strcmp(mode, "plain")) {
        plain++;
    } else if (!strcmp(mode, "good")) {
        take();
        plain++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    } else {
        int v = atomic_load(&count);
        atomic_exchange(&count, v + 1);
    }
    return x;
}

static void *later(void *file)
{
    void *library = dlopen(file, RTLD_NOW);
    CHECK(library);
    int (*work)(void) = (int (*)(void))dlsym(library, "work");
    CHECK(work && work() == 100);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t a, b;
    mode = argc > 1 ? argv[1] : "everything";
    void *(*work)(void *) = !strcmp(mode, "everything") ? everything : !strcmp(mode, "later") ? later : lose;
    void *argument = argc > 2 ? argv[2] : 0;
    pthread_create(&a, 0, work, argument);
    if (work != later)
        pthread_create(&b, 0, work, argument);
    pthread_join(a, 0);
    if (work != later)
        pthread_join(b, 0);
    if (work == everything)
        CHECK(count == 2 * ROUNDS && locked == 2 * ROUNDS && trapped == 2 * ROUNDS);
    if (work == lose)
        return plain + count == 2 ? 0 : 7;
    return 0;
}
