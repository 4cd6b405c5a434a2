/* As many threads as asked for: blocked, or every fourth one spinning. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned long counter;
static int spinning;

static __attribute__((noinline)) int deeper(int depth, long index) {
    volatile int here = depth;
    if (depth) return deeper(depth - 1, index) + here;
    if (spinning && index % 4 == 0) for (;;) counter++;
    pthread_mutex_lock(&guard);
    for (;;) pthread_cond_wait(&never, &guard);
    return here;
}

static void *thread_main(void *argument) {
    counter += deeper(8, (long)argument);
    return 0;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    spinning = count > 2 && !strcmp(arguments[2], "spin");
    for (long i = 0; i < threads - 1; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, thread_main, (void *)i)) return 1;
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
