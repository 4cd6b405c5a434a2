// Asks whether memory is there by touching it: its handler leaves by a jump, as interpreters' and verifiers' do.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static __thread sigjmp_buf back;
static int shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void on_fault(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

// The same instruction touches what is there and what is not.
__attribute__((noinline)) static int is_there(volatile int *at) {
    if (sigsetjmp(back, 1)) return 0;
    (*at)++;
    return 1;
}

static void *probes(void *hole) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        int there = is_there(&shared);
        pthread_mutex_unlock(&lock);
        if (!there || is_there(hole)) abort();
    }
    return 0;
}

int main(void) {
    void *hole = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, on_fault);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, probes, hole);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return shared == 6 ? 0 : 1;
}
