// depth 2: check < clear, clear < use
// A pointer is taken away between the look at it and its use.
#include <pthread.h>
static int data = 1;
static int *volatile shared = &data;
static void *reader(void *unused) {
    if (shared) { // @check
        int *pointer = shared; // @use
        *pointer += 1;
    }
    return unused;
}
static void *writer(void *unused) {
    shared = 0; // @clear
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, reader, 0);
    pthread_create(&other, 0, writer, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
