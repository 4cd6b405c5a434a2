/* Threads that block every signal, with accesses that only a breakpoint can make steps of: a jump fits nowhere. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

char counter;
char seen[2];

/* An increment in two instructions, each shorter than a jump, each the target of one. */
__attribute__((noinline)) static void add(void) {
    __asm__ volatile("lea counter(%%rip), %%rdx\n\t"
                     "jmp 1f\n"
                     "1:\tmov (%%rdx), %%al\n\t"
                     "jmp 2f\n"
                     "2:\tinc %%al\n\t"
                     "jmp 3f\n"
                     "3:\tmov %%al, (%%rdx)\n\t"
                     "jmp 4f\n"
                     "4:\n" ::: "rax", "rdx", "memory", "cc");
}

static void *work(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    add();
    return unused;
}

int main(void) {
    pthread_t one, other;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&other, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    if (counter != 2) {
        abort();
    }
    return 0;
}
