// Two threads pay from one account on the heap: each looks how much there is, and puts less there.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
struct account {
    long number;
    long balance;
    pthread_mutex_t lock;
};
static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER;
static struct account *make(long number) {
    struct account *account = malloc(sizeof *account);
    account->number = number;
    account->balance = 100;
    pthread_mutex_init(&account->lock, 0);
    return account;
}
static long look(struct account *account) {
    pthread_mutex_lock(&account->lock);
    long balance = account->balance;
    pthread_mutex_unlock(&account->lock);
    return balance;
}
static void put(struct account *account, long balance) {
    pthread_mutex_lock(&account->lock);
    account->balance = balance;
    pthread_mutex_unlock(&account->lock);
}
static void *pay(void *account) {
    long balance = look(account);
    put(account, balance - 10);
    return 0;
}
int main(void) {
    pthread_mutex_lock(&whole);
    pthread_mutex_unlock(&whole);
    struct account *account = make(1), *other = make(2);
    pthread_t one, two;
    pthread_create(&one, 0, pay, account);
    pthread_create(&two, 0, pay, account);
    pthread_join(one, 0);
    pthread_join(two, 0);
    put(other, look(other));
    assert(account->balance == 80);
    return 0;
}
