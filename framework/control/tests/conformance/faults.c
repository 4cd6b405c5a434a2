// Faults that the program handles: as garbage collectors, interpreters and runtimes do.
#include "case.h"
#include <setjmp.h>
#include <ucontext.h>

#define PAGE 4096
enum { PAGES = 6 };
static char *memory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int faults;

static void protect(void) {
    memory = mmap(0, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(memory != MAP_FAILED);
    faults = 0;
}

// Others may run while it is handled, and fault themselves.
static void on_write(int number, siginfo_t *information, void *unused) {
    (void)number, (void)unused;
    char *page = (char *)((unsigned long)information->si_addr & -PAGE);
    pthread_mutex_lock(&lock);
    faults++;
    pthread_mutex_unlock(&lock);
    sched_yield();
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE)) abort();
}
static void *writes(void *argument) {
    for (int i = 0; i < PAGES; i++) ((volatile char *)memory)[i * PAGE + (long)argument] = 1;
    return 0;
}
CASE(writes_are_noted_by_their_faults, "sigaction mprotect mmap") {
    struct sigaction action = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO}, before;
    protect();
    IS(sigaction(SIGSEGV, &action, &before), 0);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) threads[i] = start(writes, (void *)i);
    for (int i = 0; i < 3; i++) joined(threads[i]);
    for (int i = 0; i < PAGES; i++)
        for (int thread = 0; thread < 3; thread++) IS(memory[i * PAGE + thread], 1);
    HOLDS(faults >= PAGES && faults <= 3 * PAGES);
    IS(sigaction(SIGSEGV, &before, 0), 0);
    munmap(memory, PAGES * PAGE);
}

static __thread sigjmp_buf back;
static void jumps(int number) { siglongjmp(back, number); }
static void *probes(void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        int number = sigsetjmp(back, 1);
        if (!number) {
            *(volatile char *)memory = 1;
            complain(__LINE__, "a write went through", 1, 0);
        }
        IS(number, SIGSEGV);
        sched_yield();
    }
    return 0;
}
CASE(a_handler_may_leave_by_a_jump, "signal") {
    protect();
    void (*before)(int) = signal(SIGSEGV, jumps);
    HOLDS(before != SIG_ERR);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) threads[i] = start(probes, 0);
    for (int i = 0; i < 2; i++) joined(threads[i]);
    HOLDS(signal(SIGSEGV, before) == jumps);
    munmap(memory, PAGES * PAGE);
}

static void counts(int number) { (void)number, faults++; }
CASE(actions_on_faults_are_shown_as_they_were_named, "signal sigaction") {
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (int i = 0; i < 4; i++) {
        struct sigaction first, seen;
        struct sigaction informed = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
        sigaddset(&informed.sa_mask, SIGUSR2);
        IS(sigaction(numbers[i], 0, &first), 0);
        HOLDS(signal(numbers[i], counts) == first.sa_handler);
        IS(sigaction(numbers[i], &informed, &seen), 0);
        HOLDS(seen.sa_handler == counts);
        IS(seen.sa_flags & (SA_SIGINFO | SA_NODEFER | SA_RESETHAND), 0);
        HOLDS(seen.sa_flags & SA_RESTART);
        HOLDS(sigismember(&seen.sa_mask, numbers[i]));
        IS(sigaction(numbers[i], 0, &seen), 0);
        HOLDS(seen.sa_sigaction == on_write);
        IS(seen.sa_flags & (SA_SIGINFO | SA_RESTART | SA_NODEFER), SA_SIGINFO | SA_RESTART | SA_NODEFER);
        HOLDS(sigismember(&seen.sa_mask, SIGUSR2));
        HOLDS(signal(numbers[i], SIG_IGN) == (void (*)(int))on_write);
        HOLDS(signal(numbers[i], SIG_DFL) == SIG_IGN);
        IS(sigaction(numbers[i], &first, 0), 0);
    }
}
CASE(one_shot_handlers_of_faults, "sigaction raise pthread_kill") {
    struct sigaction action = {.sa_handler = counts, .sa_flags = SA_RESETHAND}, seen;
    faults = 0;
    IS(sigaction(SIGFPE, &action, 0), 0);
    IS(raise(SIGFPE), 0);
    IS(faults, 1);
    IS(sigaction(SIGFPE, 0, &seen), 0);
    HOLDS(seen.sa_handler == SIG_DFL);
    action.sa_flags = 0;
    IS(sigaction(SIGFPE, &action, 0), 0);
    IS(pthread_kill(pthread_self(), SIGFPE), 0);
    IS(faults, 2);
    signal(SIGFPE, SIG_DFL);
}

static atomic_int steps;
static void skips(int number, siginfo_t *information, void *context) {
    (void)number;
    HOLDS(information->si_code > 0);
    // "ud2" has two bytes.
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    steps++;
    sched_yield();
}
static void *is_illegal(void *argument) {
    for (int i = 0; i < 3; i++) __asm__ volatile("ud2" ::: "memory");
    return argument;
}
CASE(instructions_that_are_carried_out_by_a_handler, "sigaction") {
    struct sigaction action = {.sa_sigaction = skips, .sa_flags = SA_SIGINFO}, before;
    steps = 0;
    IS(sigaction(SIGILL, &action, &before), 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) threads[i] = start(is_illegal, 0);
    for (int i = 0; i < 3; i++) joined(threads[i]);
    IS(steps, 9);
    IS(sigaction(SIGILL, &before, 0), 0);
}
