// Two races: a counter that one side guards, and a balance that one side does.
#include <pthread.h>
#include <stdlib.h>

struct account {
    long number;
    int balance;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int visits;
static struct account *account;

static void open_account(void) { account = calloc(1, sizeof *account); }

static void deposit(int amount) { account->balance += amount; }

static void *customer(void *unused) {
    (void)unused;
    pthread_mutex_lock(&guard);
    visits++;
    deposit(5);
    pthread_mutex_unlock(&guard);
    return NULL;
}

static void *auditor(void *unused) {
    (void)unused;
    visits++;
    return NULL;
}

static void *employer(void *unused) {
    (void)unused;
    deposit(7);
    return NULL;
}

int main(void) {
    void *(*roles[])(void *) = {customer, auditor, employer};
    pthread_t threads[3];
    open_account();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, roles[i], NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    free(account);
    return 0;
}
