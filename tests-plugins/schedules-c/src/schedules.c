/* Tests in C that fail in few schedules, and their correct twins. With each: its depth d, the number of ordering
 * constraints that make it appear. Every instance is fresh; workers take roles in the order in which they arrive. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "waylay.h"

typedef struct small small;
struct small {
  waylay_instance instance; /* first: the host's pointer is ours */
  const waylay_services *services;
  waylay_context *context;
  int32_t (*body)(small *self, waylay_context *worker, int role);
  void (*finish)(small *self);
  const waylay_distribution *amount;
  pthread_mutex_t roles, left, right, guard;
  pthread_cond_t changed;
  int arrived, ready, total;
  int paid[2];
  int *published;
};

static void filler(small *self) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&self->guard);
    pthread_mutex_unlock(&self->guard);
  }
}

static void take_both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}

/* deadlock, d = 2: two locks in opposite orders. */
static int32_t deadlock(small *self, waylay_context *worker, int role) {
  (void)worker;
  filler(self);
  if (role % 2) {
    take_both(&self->right, &self->left);
  } else {
    take_both(&self->left, &self->right);
  }
  filler(self);
  return WAYLAY_OK;
}

static int32_t deadlock_fixed(small *self, waylay_context *worker, int role) {
  (void)worker;
  (void)role;
  filler(self);
  take_both(&self->left, &self->right);
  filler(self);
  return WAYLAY_OK;
}

/* late-deadlock, d = 2: the same, but one thread comes twenty milliseconds after the other, which by then is long done.
 * When threads run freely, the two locks are practically never wanted at the same time. */
static int32_t late_deadlock(small *self, waylay_context *worker, int role) {
  (void)worker;
  const struct timespec some_time = {0, 20000000};
  if (role % 2) {
    nanosleep(&some_time, NULL);
    take_both(&self->right, &self->left);
  } else {
    take_both(&self->left, &self->right);
    nanosleep(&some_time, NULL);
  }
  nanosleep(&some_time, NULL);
  return WAYLAY_OK;
}

/* lost-update, d = 2: the sum is read and written under the lock, but not in one piece. */
static int32_t lost_update(small *self, waylay_context *worker, int role) {
  (void)role;
  int amount = (int)self->services->draw_int(worker, self->amount);
  filler(self);
  pthread_mutex_lock(&self->guard);
  int sum = self->total;
  pthread_mutex_unlock(&self->guard);
  pthread_mutex_lock(&self->guard);
  self->total = sum + amount;
  self->ready += amount;
  pthread_mutex_unlock(&self->guard);
  filler(self);
  return WAYLAY_OK;
}

static int32_t lost_update_fixed(small *self, waylay_context *worker, int role) {
  (void)role;
  int amount = (int)self->services->draw_int(worker, self->amount);
  filler(self);
  pthread_mutex_lock(&self->guard);
  self->total += amount;
  self->ready += amount;
  pthread_mutex_unlock(&self->guard);
  filler(self);
  return WAYLAY_OK;
}

static void sums_agree(small *self) {
  if (self->total != self->ready) waylay_fail(self->services, self->context, "an update was lost");
}

/* null, d = 1: the reader does not wait for the writer. */
static int32_t null(small *self, waylay_context *worker, int role) {
  (void)worker;
  static int value = 7;
  filler(self);
  pthread_mutex_lock(&self->guard);
  if (role == 0) {
    pthread_mutex_unlock(&self->guard);
    filler(self);
    pthread_mutex_lock(&self->guard);
    self->published = &value;
  } else {
    *(volatile int *)self->published = 8;
  }
  pthread_mutex_unlock(&self->guard);
  return WAYLAY_OK;
}

/* overdrawn, d = 2: looks at the balance, then takes from it. */
static int32_t overdrawn(small *self, waylay_context *worker, int role) {
  (void)worker;
  (void)role;
  pthread_mutex_lock(&self->guard);
  int enough = self->total == 0;
  pthread_mutex_unlock(&self->guard);
  if (enough) {
    pthread_mutex_lock(&self->guard);
    self->total -= 1;
    assert(self->total >= -1 && "the balance covers every payment");
    pthread_mutex_unlock(&self->guard);
  }
  return WAYLAY_OK;
}

/* missed-signal, d = 1: waits for a signal that may have come before. */
static int32_t missed_signal(small *self, waylay_context *worker, int role) {
  (void)worker;
  pthread_mutex_lock(&self->guard);
  if (role == 0) {
    pthread_cond_wait(&self->changed, &self->guard);
  } else {
    pthread_cond_signal(&self->changed);
  }
  pthread_mutex_unlock(&self->guard);
  return WAYLAY_OK;
}

static int32_t missed_signal_fixed(small *self, waylay_context *worker, int role) {
  (void)worker;
  pthread_mutex_lock(&self->guard);
  if (role == 0) {
    while (!self->ready) pthread_cond_wait(&self->changed, &self->guard);
  } else {
    self->ready = 1;
    pthread_cond_signal(&self->changed);
  }
  pthread_mutex_unlock(&self->guard);
  return WAYLAY_OK;
}

/* endless, d = 1: waits with yields for a flag that the other takes back. */
static int32_t endless(small *self, waylay_context *worker, int role) {
  (void)worker;
  for (int seen = 0; !seen;) {
    pthread_mutex_lock(&self->guard);
    if (role == 0) {
      self->ready = 1;
      seen = 1;
    } else {
      seen = self->ready;
    }
    pthread_mutex_unlock(&self->guard);
    sched_yield();
  }
  if (role == 0) {
    pthread_mutex_lock(&self->guard);
    self->ready = 0;
    pthread_mutex_unlock(&self->guard);
  }
  return WAYLAY_OK;
}

/* What a test may leave running. */
static void *counts(void *sum) {
  sched_yield();
  __atomic_add_fetch((int *)sum, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void start_detached(void *(*routine)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, argument) == 0) pthread_detach(thread);
}

/* detached: threads that nobody joins, and that end by themselves. */
static int32_t detached(small *self, waylay_context *worker, int role) {
  static int sum;
  (void)self;
  (void)worker;
  (void)role;
  start_detached(counts, &sum);
  return WAYLAY_OK;
}

/* pool: a thread for all later iterations, which waits for work for ever. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static int pool_exists, pool_jobs;

static void *serve(void *unused) {
  pthread_mutex_lock(&pool_lock);
  for (;;) {
    while (pool_jobs == 0) pthread_cond_wait(&pool_work, &pool_lock);
    pool_jobs--;
  }
  return unused;
}

static int32_t pool(small *self, waylay_context *worker, int role) {
  (void)self;
  (void)worker;
  (void)role;
  pthread_mutex_lock(&pool_lock);
  if (!pool_exists) {
    pool_exists = 1;
    start_detached(serve, NULL);
  }
  pool_jobs++;
  pthread_cond_signal(&pool_work);
  pthread_mutex_unlock(&pool_lock);
  return WAYLAY_OK;
}

/* remembers: fails because of what earlier iterations left in a global variable, in no schedule by itself. */
static int32_t remembers(small *self, waylay_context *worker, int role) {
  static int calls;
  (void)role;
  pthread_mutex_lock(&self->guard);
  int now = ++calls;
  pthread_mutex_unlock(&self->guard);
  if (now == 101) waylay_fail(self->services, worker, "called for the hundred and first time");
  return WAYLAY_OK;
}

/* balance, d = 2: pays into a balance without a lock. Nothing but plain loads and stores is shared. */
static int32_t balance(small *self, waylay_context *worker, int role) {
  int amount = (int)self->services->draw_int(worker, self->amount);
  int before = self->total;
  self->total = before + amount;
  self->paid[role % 2] = amount;
  return WAYLAY_OK;
}

static void payments_are_there(small *self) {
  if (self->total != self->paid[0] + self->paid[1]) {
    waylay_fail(self->services, self->context, "a payment was lost");
  }
}

/* late-balance, d = 2: the same behind rounds with a lock. */
static int32_t late_balance(small *self, waylay_context *worker, int role) {
  for (int i = 0; i < 10; i++) {
    pthread_mutex_lock(&self->guard);
    pthread_mutex_unlock(&self->guard);
  }
  return balance(self, worker, role);
}

/* balance-fixed: the same with a lock. */
static int32_t balance_fixed(small *self, waylay_context *worker, int role) {
  pthread_mutex_lock(&self->guard);
  int32_t result = balance(self, worker, role);
  pthread_mutex_unlock(&self->guard);
  return result;
}

/* apart: two threads count, each for itself, with plain accesses alone. */
static int32_t apart(small *self, waylay_context *worker, int role) {
  (void)worker;
  volatile int *mine = &self->paid[role % 2];
  for (int i = 0; i < 10; i++) {
    *mine = *mine + 1;
    sched_yield();
  }
  return WAYLAY_OK;
}

/* pair: about fifty steps of two threads and no bug, for measuring. */
static int32_t pair(small *self, waylay_context *worker, int role) {
  (void)worker;
  (void)role;
  for (int i = 0; i < 10; i++) {
    pthread_mutex_lock(&self->guard);
    self->total++;
    pthread_mutex_unlock(&self->guard);
  }
  return WAYLAY_OK;
}

typedef struct entry {
  const char *name, *about;
  int32_t (*body)(small *self, waylay_context *worker, int role);
  void (*finish)(small *self);
} entry;

static const entry ENTRIES[] = {
    {"deadlock", "two locks in opposite orders", deadlock, NULL},
    {"deadlock-fixed", "two locks in one order", deadlock_fixed, NULL},
    {"late-deadlock", "two locks in opposite orders, twenty milliseconds apart", late_deadlock, NULL},
    {"lost-update", "reads and writes a sum in two pieces", lost_update, sums_agree},
    {"lost-update-fixed", "reads and writes a sum in one piece", lost_update_fixed, sums_agree},
    {"null", "uses a pointer before it is published", null, NULL},
    {"overdrawn", "looks before it pays, and pays later", overdrawn, NULL},
    {"missed-signal", "waits for a signal that came before", missed_signal, NULL},
    {"missed-signal-fixed", "waits for a condition", missed_signal_fixed, NULL},
    {"endless", "waits for a flag that was taken back", endless, NULL},
    {"detached", "starts threads that nobody joins", detached, NULL},
    {"pool", "starts a thread that waits for work for ever", pool, NULL},
    {"remembers", "counts calls in a global variable", remembers, NULL},
    {"balance", "pays into a balance without a lock", balance, payments_are_there},
    {"late-balance", "pays into a balance without a lock, after much that is locked", late_balance, payments_are_there},
    {"balance-fixed", "pays into a balance with a lock", balance_fixed, payments_are_there},
    {"apart", "two threads count, each for itself", apart, NULL},
    {"pair", "fifty steps of two threads", pair, NULL},
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof ENTRIES[0] };

static int32_t test_main(waylay_instance *instance, waylay_context *worker) {
  small *self = (small *)instance;
  pthread_mutex_lock(&self->roles);
  int role = self->arrived++;
  pthread_mutex_unlock(&self->roles);
  return self->body(self, worker, role);
}

static void on_test_end(waylay_instance *instance) {
  small *self = (small *)instance;
  if (self->finish) self->finish(self);
}

static const waylay_param_info AMOUNT = {sizeof AMOUNT, 0, "amount", "{ uniform = { min = 1, max = 100 } }",
                                         "what is added to a sum"};
static const waylay_param_info *const PARAMS[] = {&AMOUNT};

static waylay_test_info infos[ENTRY_COUNT];
static const waylay_test_info *info_pointers[ENTRY_COUNT];
static waylay_plugin_info plugin = {
    .size = sizeof plugin,
    .abi_version = WAYLAY_ABI_VERSION,
    .name = "schedules-c",
    .tests = info_pointers,
    .test_count = ENTRY_COUNT,
};

static void describe(void) {
  for (int i = 0; i < ENTRY_COUNT; i++) {
    infos[i].size = sizeof infos[i];
    infos[i].name = ENTRIES[i].name;
    infos[i].about = ENTRIES[i].about;
    infos[i].params = PARAMS;
    infos[i].param_count = 1;
    info_pointers[i] = &infos[i];
  }
}

const waylay_plugin_info *WaylayPlugin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, describe);
  return &plugin;
}

waylay_instance *CreateInstance(const waylay_create_args *args) {
  for (int i = 0; i < ENTRY_COUNT; i++) {
    if (strcmp(args->test, ENTRIES[i].name) != 0) continue;
    small *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->instance.size = sizeof self->instance;
    self->instance.TestMain = test_main;
    self->instance.OnTestEnd = on_test_end;
    self->services = args->services;
    self->context = args->context;
    self->body = ENTRIES[i].body;
    self->finish = ENTRIES[i].finish;
    self->amount = args->services->distribution(args->context, "amount");
    pthread_mutex_init(&self->roles, NULL);
    pthread_mutex_init(&self->left, NULL);
    pthread_mutex_init(&self->right, NULL);
    pthread_mutex_init(&self->guard, NULL);
    pthread_cond_init(&self->changed, NULL);
    return &self->instance;
  }
  return NULL;
}

void DestroyInstance(waylay_instance *instance) { free(instance); }
