// clean
#include "wild.h"
static volatile sig_atomic_t caught;
static void counts(int number) {
    (void)number;
    caught++;
}
static void *waits(void *x) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &number);
    assert(number == SIGUSR2);
    return x;
}
int main(void) {
    signal(SIGUSR1, counts);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    kill(getpid(), SIGUSR1);
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, 0);
    raise(SIGUSR1);
    assert(caught == 2);
    alarm(100);
    return 0;
}
