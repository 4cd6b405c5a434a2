// A hundred megabytes that are there before main, of which two threads change a thousand pages in every run.
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 100 << 8, CHANGED = 1000 };
static char *memory;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int next;

__attribute__((constructor)) static void fill(void) {
    memory = mmap(0, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, (size_t)PAGES * PAGE);
}

static void *change(void *unused) {
    for (;;) {
        pthread_mutex_lock(&guard);
        int at = next;
        next += 50;
        pthread_mutex_unlock(&guard);
        if (at >= CHANGED) return unused;
        for (int i = at; i < at + 50; i++) memory[(size_t)i * 20 * PAGE]++;
    }
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, change, 0);
    pthread_create(&other, 0, change, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    for (int i = 0; i < CHANGED; i++)
        if (memory[(size_t)i * 20 * PAGE] != 2) return 1;
    return 0;
}
