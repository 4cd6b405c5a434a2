/* As many numbers as it is told are written, and read by a thread that waits for a flag which only plain moves touch. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int *numbers;
static int count;
static const char *how;
static volatile int flag;

__attribute__((noinline)) static int is_set(void) {
    return flag;
}

static void *writer(void *unused) {
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
    }
    flag = 1;
    return unused;
}

static void *reader(void *unused) {
    const struct timespec moment = {0, 1000};
    long sum = 0;
    if (strcmp(how, "yield") == 0) {
        while (!flag) {
            sched_yield();
        }
    } else if (strcmp(how, "usleep") == 0) {
        while (!flag) {
            usleep(10);
        }
    } else if (strcmp(how, "nanosleep") == 0) {
        while (!is_set()) {
            nanosleep(&moment, NULL);
        }
    } else {
        while (!is_set()) {
        }
    }
    for (int i = 0; i < count; i++) {
        sum += numbers[i];
    }
    if (sum != (long)count * (count - 1) / 2) {
        abort();
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t one, other;
    how = argc > 1 ? argv[1] : "yield";
    count = argc > 2 ? atoi(argv[2]) : 10;
    numbers = calloc((size_t)count, sizeof *numbers);
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&other, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    return 0;
}
