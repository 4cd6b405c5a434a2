// Uses an allocator that is not libc's, through libc functions that allocate, too.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern size_t arena_calls;

__attribute__((noinline)) static void leak_from_arena(void) { __asm__ volatile("" : : "r"(malloc(1000)) : "memory"); }
static void *work(void *unused) { free(strdup("thread")); return unused; }

int main(void) {
    for (int i = 0; i < 1000; i++) {
        char *copy = strdup("a string of some length that is copied");
        char *text;
        if (asprintf(&text, "%s %d", copy, i) < 0 || malloc_usable_size(text) == 0) _exit(8);
        free(copy);
        free(realloc(text, 500));
        leak_from_arena();
        void *block;
        if (posix_memalign(&block, 64, 100) || malloc_usable_size(block) != 100) _exit(8);
        free(block);
    }
    pthread_t thread;
    if (pthread_create(&thread, 0, work, 0)) _exit(8);
    pthread_join(thread, 0);
    printf("calls %zu\n", arena_calls);
    fflush(stdout);
    _exit(0);
}
