// depth 2: read < write, read < write
// Both threads read the number before either writes it, so one sale is lost.
#include <assert.h>
#include <pthread.h>
static int sold;
static void *sell(void *unused) {
    int before = sold; // @read
    sold = before + 1; // @write
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, sell, 0);
    pthread_create(&other, 0, sell, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    assert(sold == 2);
    return 0;
}
