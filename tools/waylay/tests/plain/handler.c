/* A handler looks at a pair that the thread it interrupts is changing. The signal comes from another thread (the default), as
   one for the whole process (PROCESS), or from a timer (TIMER). */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

static struct {
    volatile int written, checked;
} pair;
static atomic_int ready;
static volatile sig_atomic_t handled;
static pthread_t writer;

static void look(int number)
{
    (void)number;
    assert(pair.written == pair.checked);
    handled = 1;
}

static void change(void)
{
    for (int i = 0; i < 4; i++) {
#ifdef FIXED
        sigset_t set, before;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGALRM);
        pthread_sigmask(SIG_BLOCK, &set, &before);
#endif
        pair.written++;
        pair.checked++;
#ifdef FIXED
        pthread_sigmask(SIG_SETMASK, &before, 0);
#endif
    }
}

static void *sender(void *unused)
{
    while (!atomic_load(&ready))
        ;
#ifdef PROCESS
    kill(getpid(), SIGUSR1);
#else
    pthread_kill(writer, SIGUSR1);
#endif
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = look};
    writer = pthread_self();
    pthread_t other;
#ifdef TIMER
    sigaction(SIGALRM, &action, 0);
    struct itimerval soon = {.it_value = {0, 100}};
    setitimer(ITIMER_REAL, &soon, 0);
    (void)sender, (void)other, (void)ready;
    change();
#else
    sigaction(SIGUSR1, &action, 0);
    pthread_create(&other, 0, sender, 0);
    atomic_store(&ready, 1);
    change();
    pthread_join(other, 0);
#endif
    return 0;
}
