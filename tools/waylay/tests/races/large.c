// Touches so many megabytes, one byte in eight, while another thread lives.
#include <pthread.h>
#include <stdlib.h>

static char *memory;
static size_t length;

static void *touch(void *unused) {
    for (size_t i = 0; i < length; i += 8) memory[i] = 1;
    return unused;
}

int main(int count, char **arguments) {
    length = (size_t)atoi(arguments[count - 1]) << 20;
    memory = malloc(length);
    pthread_t thread;
    pthread_create(&thread, NULL, touch, NULL);
    pthread_join(thread, NULL);
    return memory[0] != 1;
}
