/* Small programs of POSIX threads as mingw has them, compiled so that atomic and volatile accesses are reported. Each says
 * whether it went well. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t slim = PTHREAD_RWLOCK_INITIALIZER;
static volatile int count, ready;
static int plain;

static void both(void *(*first)(void *), void *(*second)(void *)) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, first, NULL);
  pthread_create(&threads[1], NULL, second, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* The lost update of bodies.rs, with the same steps: the sum is plain, so that its accesses are none. */
static void *add_carelessly(void *none) {
  pthread_mutex_lock(&guard);
  const int seen = plain;
  pthread_mutex_unlock(&guard);
  pthread_mutex_lock(&guard);
  plain = seen + 1;
  pthread_mutex_unlock(&guard);
  return none;
}
int posix_lost_update(void) {
  plain = 0;
  both(add_carelessly, add_carelessly);
  return plain == 2;
}

/* No call at all between reading and writing: only a compiler that reports the accesses makes them steps. */
static void *add_volatile(void *none) {
  count = count + 1;
  return none;
}
int posix_volatile(void) {
  count = 0;
  both(add_volatile, add_volatile);
  return count == 2;
}

static _Atomic int total;
static void *add_atomic(void *none) {
  atomic_fetch_add(&total, 1);
  return none;
}
int posix_atomic(void) {
  atomic_store(&total, 0);
  both(add_atomic, add_atomic);
  return atomic_load(&total) == 2;
}

static void *waits(void *none) {
  pthread_mutex_lock(&guard);
  while (!ready) pthread_cond_wait(&changed, &guard);
  plain++;
  pthread_mutex_unlock(&guard);
  return none;
}
static void *tells(void *none) {
  pthread_mutex_lock(&guard);
  ready = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&guard);
  return none;
}
int posix_condition(void) {
  plain = ready = 0;
  both(waits, tells);
  return plain == 1;
}

/* A flag that is waited for without a call: the loop is recognised and gives way. */
static void *spins(void *none) {
  while (!ready) {
  }
  return none;
}
static void *sets(void *none) {
  ready = 1;
  return none;
}
int posix_flag(void) {
  ready = 0;
  both(spins, sets);
  return 1;
}

static void *reads_and_writes(void *none) {
  pthread_rwlock_rdlock(&slim);
  const int seen = plain;
  pthread_rwlock_unlock(&slim);
  pthread_rwlock_wrlock(&slim);
  plain += seen >= 0;
  pthread_rwlock_unlock(&slim);
  return none;
}
int posix_rwlock(void) {
  plain = 0;
  both(reads_and_writes, reads_and_writes);
  return plain == 2;
}

static sem_t places;
static pthread_barrier_t meeting;
static pthread_spinlock_t spin;
static pthread_once_t *once;
static int serial, initialised;
static void initialise(void) {
  const struct timespec some = {0, 1000};
  nanosleep(&some, NULL);
  initialised++;
}
static void *meets(void *none) {
  pthread_once(once, initialise);
  sem_wait(&places);
  pthread_spin_lock(&spin);
  plain++;
  pthread_spin_unlock(&spin);
  sem_post(&places);
  if (pthread_barrier_wait(&meeting) != 0) serial++;
  return none;
}
int posix_meeting(void) {
  pthread_once_t fresh = PTHREAD_ONCE_INIT;
  once = &fresh;
  plain = serial = initialised = 0;
  sem_init(&places, 0, 1);
  pthread_barrier_init(&meeting, NULL, 2);
  pthread_spin_init(&spin, 0);
  both(meets, meets);
  sem_destroy(&places);
  pthread_barrier_destroy(&meeting);
  return plain == 2 && serial == 1 && initialised == 1;
}

/* Locks that count and locks that check keep their meaning; waits with a deadline end. */
int posix_kinds(void) {
  pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER, checking;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checking, &attributes);
  int good = pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&recursive) == 0;
  good = good && pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0;
  good = good && pthread_mutex_lock(&checking) == 0 && pthread_mutex_lock(&checking) == EDEADLK;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 3600;
  good = good && pthread_cond_timedwait(&changed, &checking, &until) == ETIMEDOUT;
  good = good && pthread_mutex_unlock(&checking) == 0 && pthread_mutex_destroy(&checking) == 0;
  sem_init(&places, 0, 0);
  good = good && sem_timedwait(&places, &until) == -1 && errno == ETIMEDOUT;
  good = good && sem_trywait(&places) == -1 && errno == EAGAIN;
  sem_destroy(&places);
  pthread_mutex_destroy(&recursive);
  return good;
}

static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static void *takes_other_last(void *none) {
  pthread_mutex_lock(&guard);
  pthread_mutex_lock(&other);
  pthread_mutex_unlock(&other);
  pthread_mutex_unlock(&guard);
  return none;
}
static void *takes_other_first(void *none) {
  pthread_mutex_lock(&other);
  pthread_mutex_lock(&guard);
  pthread_mutex_unlock(&guard);
  pthread_mutex_unlock(&other);
  return none;
}
int posix_two_mutexes(void) {
  both(takes_other_last, takes_other_first);
  return 1;
}
