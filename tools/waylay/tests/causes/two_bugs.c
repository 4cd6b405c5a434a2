// Two bugs that have nothing to do with each other.
// depth 2: read < write, read < write
// depth 2: check < clear, clear < use
#include <assert.h>
#include <pthread.h>
static volatile int sold;
static int data = 1;
static int *volatile shared = &data;
static void *seller(void *unused) {
    int before = sold; // @read
    sold = before + 1; // @write
    return unused;
}
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
    void *(*all[4])(void *) = {seller, seller, reader, writer};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, all[i], 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    assert(sold == 2);
    return 0;
}
