/* A program whose way depends on the processor's counter: prints all that it read. With an argument nothing is checked, for runs
   that see real time. */
#include "check.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define ROUNDS 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last, sum, odd, locked;
static int real;

/* Two bytes between two places that are jumped to: no jump fits. */
static uint64_t in_a_trap(void)
{
    uint32_t low = 0, high = 0;
    int rounds = 3;
    __asm__ volatile("jmp 2f\n 1: rdtsc\n 2: decl %2\n jns 1b" : "+a"(low), "+d"(high), "+r"(rounds) : : "cc");
    return (uint64_t)high << 32 | low;
}

/* Other registers and the flags outlive a look at the counter. */
static uint64_t beside_others(void)
{
    uint64_t low, high, kept = 0x1122334455667788u;
    uint8_t carry;
    __asm__ volatile("mov %3, %%rcx\n stc\n rdtsc\n setc %2\n cmp %3, %%rcx\n je 1f\n ud2\n 1:"
                     : "=&a"(low), "=&d"(high), "=&r"(carry)
                     : "r"(kept)
                     : "rcx", "cc");
    CHECK(carry == 1 && low >> 32 == 0 && high >> 32 == 0);
    return high << 32 | low;
}

static uint64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t look(int round)
{
    unsigned processor = 77;
    switch (round % 4) {
    case 0: return __rdtsc();
    case 1: return beside_others();
    case 2: return in_a_trap();
    default: {
        uint64_t value = __rdtscp(&processor);
        CHECK(real || processor == 0);
        return value;
    }
    }
}

static void *work(void *name)
{
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = clock_now(), value = look(round), after = clock_now();
        CHECK(real || (before < value && value < after));
        /* 50 is what a look takes; the way depends on how many there were. */
        if (value / 50 % 3 == 0) {
            pthread_mutex_lock(&lock);
            locked++;
            pthread_mutex_unlock(&lock);
        }
        pthread_mutex_lock(&lock);
        CHECK(real || value != last);
        last = value;
        sum = sum * 31 + value;
        odd += value / 50 % 2;
        pthread_mutex_unlock(&lock);
    }
    /* A wait that ends by time alone. */
    uint64_t end = __rdtsc() + 20000;
    while (__rdtsc() < end)
        ;
    return name;
}

int main(int argc, char **argv)
{
    (void)argv;
    real = argc > 1;
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%llu %llu %llu %llu\n", (unsigned long long)sum, (unsigned long long)odd, (unsigned long long)locked,
           (unsigned long long)__rdtsc());
    return 0;
}
