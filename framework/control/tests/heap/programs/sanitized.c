// Built with AddressSanitizer. With an argument it uses freed memory, which the sanitizer must still see.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

static void *work(void *text) { free(strdup(text)); return 0; }

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 2000; i++) {
        char *copy = strdup("copied by the sanitizer's strdup");
        copy = realloc(copy, 400);
        free(copy);
        void *block;
        if (posix_memalign(&block, 64, 1000)) return 8;
        free(block);
    }
    pthread_t thread;
    if (pthread_create(&thread, 0, work, "thread")) return 8;
    pthread_join(thread, 0);
    char *volatile gone = malloc(100);
    free(gone);
    if (argc > 1) putchar(gone[argc]);
    puts("done");
    return 0;
}
