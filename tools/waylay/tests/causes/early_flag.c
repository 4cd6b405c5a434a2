// depth 2: announce < look, read < write
// The flag says that the data is there before it is.
#include <assert.h>
#include <pthread.h>
static volatile int there, data;
static void *producer(void *unused) {
    there = 1; // @announce
    data = 42; // @write
    return unused;
}
static void *consumer(void *unused) {
    if (there) { // @look
        int seen = data; // @read
        assert(seen == 42);
    }
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, producer, 0);
    pthread_create(&other, 0, consumer, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
