// depth 2: check < take, take < spend
// What is checked under the lock is spent under the lock, but not under the same one.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int money = 1;
static void *customer(void *unused) {
    pthread_mutex_lock(&lock); // @check
    int enough = money > 0;
    pthread_mutex_unlock(&lock);
    if (enough) {
        pthread_mutex_lock(&lock); // @spend
        money -= 1;
        assert(money >= 0);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
static void *bank(void *unused) {
    pthread_mutex_lock(&lock); // @take
    money = 0;
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, customer, 0);
    pthread_create(&other, 0, bank, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
