/* Two transfers in opposite directions, each of which takes the lock of its source first. */
#include <pthread.h>

typedef struct account {
  pthread_mutex_t lock;
  long balance;
} account;

static account savings = {PTHREAD_MUTEX_INITIALIZER, 100};
static account checking = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(account *from, account *to, long amount) {
  pthread_mutex_lock(&from->lock);
  pthread_mutex_lock(&to->lock);
  from->balance -= amount;
  to->balance += amount;
  pthread_mutex_unlock(&to->lock);
  pthread_mutex_unlock(&from->lock);
}

static void *spend(void *unused) {
  transfer(&savings, &checking, 10);
  return unused;
}

static void *save(void *unused) {
  transfer(&checking, &savings, 20);
  return unused;
}

int main(void) {
  pthread_t one, other;
  pthread_create(&one, 0, spend, 0);
  pthread_create(&other, 0, save, 0);
  pthread_join(one, 0);
  pthread_join(other, 0);
  return savings.balance + checking.balance == 200 ? 0 : 1;
}
