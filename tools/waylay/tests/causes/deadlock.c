// depth 2: first_a < second_a, second_b < first_b
// Two locks in opposite order.
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *first(void *unused) {
    pthread_mutex_lock(&a); // @first_a
    pthread_mutex_lock(&b); // @first_b
    balance++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}
static void *second(void *unused) {
    pthread_mutex_lock(&b); // @second_b
    pthread_mutex_lock(&a); // @second_a
    balance--;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return balance;
}
