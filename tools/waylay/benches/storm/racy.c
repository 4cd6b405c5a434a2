/* A program with a bug that some schedules show. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static int look(void) {
  pthread_mutex_lock(&lock);
  int seen = sum;
  pthread_mutex_unlock(&lock);
  return seen;
}

static void *add(void *unused) {
  (void)unused;
  int seen = look();
  pthread_mutex_lock(&lock);
  sum = seen + 1;
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, add, NULL);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  if (look() != 3) abort();
  return 0;
}
