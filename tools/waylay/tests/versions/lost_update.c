/* Two threads sell, and one sale is lost: what the files beside this one are about. */
#include <assert.h>
#include <pthread.h>

static int sold;

static void *sell(void *unused) {
  int before = sold;
  sold = before + 1;
  return unused;
}

int main(void) {
  pthread_t other;
  pthread_create(&other, 0, sell, 0);
  sell(0);
  pthread_join(other, 0);
  assert(sold == 2);
  return 0;
}
