/* Tests in C that fail on purpose. Each runs well `after` times, over all workers, and then does what its name says. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "waylay.h"

#ifdef _WIN32
#define NOTHING_TO_READ "NUL"
#define O_CLOEXEC O_NOINHERIT
#define pause() sleep(3600)
#else
#define NOTHING_TO_READ "/dev/null"
#endif

typedef struct fault fault;
struct fault {
  waylay_instance instance; /* first: the host's pointer is ours */
  const waylay_services *services;
  waylay_context *context;
  const waylay_distribution *after;
  atomic_llong left;
  int32_t (*strike)(fault *self, waylay_context *worker);
};

static void pause_a_little(void) {
  const struct timespec two_ms = {0, 2000000};
  nanosleep(&two_ms, NULL);
}

/* crash: follows the link of a list's last node. */
typedef struct node {
  struct node *next;
  int value;
} node;

static int32_t crash(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  node last = {NULL, 1};
  node *volatile current = &last;
  current = current->next;
  *(volatile int *)&current->value = 2;
  return WAYLAY_OK;
}

/* assert: a failed assertion of the C library. */
static int32_t assert_fails(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  volatile int balance = -1;
  assert(balance >= 0 && "the balance is never negative");
  return WAYLAY_OK;
}

/* abort */
static int32_t aborts(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  abort();
}

/* exit: leaves with a status of its own. */
static int32_t exits(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  exit(3);
}

/* failed: the test itself notices. */
static int32_t fails(fault *self, waylay_context *worker) {
  volatile int sum = 7;
  if (sum != 8) {
    waylay_failf(self->services, worker, "the sum is %d, not %d", sum, 8);
    return WAYLAY_FAILED;
  }
  return WAYLAY_OK;
}

/* stack-overflow: recursion that no compiler turns into a loop. */
static volatile int for_ever = 1;
static int descend(int depth) {
  volatile char here[512];
  here[0] = (char)depth;
  return for_ever ? descend(depth + 1) + here[0] : here[0];
}

static int32_t overflows(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  return descend(0) == 1 ? WAYLAY_DONE : WAYLAY_OK;
}

/* deadlock: two accounts, two transfers, each holds one lock before either asks for the other. */
typedef struct bank {
  pthread_mutex_t accounts[2];
  pthread_barrier_t both_hold_one;
} bank;

typedef struct transfer {
  bank *bank;
  int from;
} transfer;

static void *move_money(void *argument) {
  transfer *mine = argument;
  pthread_mutex_lock(&mine->bank->accounts[mine->from]);
  pthread_barrier_wait(&mine->bank->both_hold_one);
  pthread_mutex_lock(&mine->bank->accounts[1 - mine->from]);
  pthread_mutex_unlock(&mine->bank->accounts[1 - mine->from]);
  pthread_mutex_unlock(&mine->bank->accounts[mine->from]);
  return NULL;
}

static int32_t deadlocks(fault *self, waylay_context *worker) {
  bank bank = {.accounts = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}};
  transfer there = {&bank, 0}, back = {&bank, 1};
  pthread_t first, second;
  pthread_barrier_init(&bank.both_hold_one, NULL, 2);
  if (pthread_create(&first, NULL, move_money, &there) != 0 || pthread_create(&second, NULL, move_money, &back) != 0) {
    waylay_fail(self->services, worker, "cannot start a thread");
    return WAYLAY_FAILED;
  }
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  return WAYLAY_OK;
}

/* memory-leak: of a hundred blocks, one is never freed. */
enum { BLOCKS = 100, BLOCK_SIZE = 512 };

static __attribute__((noinline)) void *leaks_a_block(void) {
  return malloc(BLOCK_SIZE);
}

static int32_t leaks_memory(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  for (int i = 1; i < BLOCKS; i++) {
    void *volatile block = malloc(BLOCK_SIZE);
    free(block);
  }
  void *volatile forgotten = leaks_a_block();
  (void)forgotten;
  pause_a_little();
  return WAYLAY_OK;
}

/* fd-leak: a file stays open, at most forty times. */
static int32_t leaks_files(fault *self, waylay_context *worker) {
  static atomic_int left = 40;
  (void)worker;
  int file = open(NOTHING_TO_READ, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    waylay_fail(self->services, worker, "cannot open " NOTHING_TO_READ);
    return WAYLAY_FAILED;
  }
  if (atomic_fetch_sub(&left, 1) <= 0) {
    atomic_fetch_add(&left, 1);
    close(file);
  }
  pause_a_little();
  return WAYLAY_OK;
}

/* thread-leak: a thread that nobody joins or ends, at most eight times. */
static void *waits_for_ever(void *argument) {
  (void)argument;
  for (;;) pause();
  return NULL;
}

static int32_t leaks_threads(fault *self, waylay_context *worker) {
  static atomic_int left = 8;
  pthread_t thread;
  if (atomic_fetch_sub(&left, 1) > 0) {
    if (pthread_create(&thread, NULL, waits_for_ever, NULL) != 0) {
      waylay_fail(self->services, worker, "cannot start a thread");
      return WAYLAY_FAILED;
    }
    pthread_setname_np(thread, "left-behind");
  } else {
    atomic_fetch_add(&left, 1);
  }
  pause_a_little();
  return WAYLAY_OK;
}

#ifdef _WIN32
#include "windows_faults.h"
#else
#define WINDOWS_ENTRIES
#endif

/* create-null, start-fails: never get here. */
static int32_t never(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  return WAYLAY_OK;
}

static int32_t start_and_draw(waylay_instance *instance) {
  fault *self = (fault *)instance;
  atomic_store(&self->left, self->services->draw_int(self->context, self->after));
  return WAYLAY_OK;
}

static int32_t start_and_fail(waylay_instance *instance) {
  fault *self = (fault *)instance;
  waylay_fail(self->services, self->context, "the device under test is not there");
  return WAYLAY_FAILED;
}

static int32_t iterate(waylay_instance *instance, waylay_context *worker) {
  fault *self = (fault *)instance;
  if (atomic_fetch_sub(&self->left, 1) > 0) return WAYLAY_OK;
  atomic_store(&self->left, 0);
  return self->strike(self, worker);
}

/* The table of tests; the order is that of `infos`. */
typedef struct entry {
  const char *name;
  const char *about;
  int32_t (*strike)(fault *self, waylay_context *worker);
} entry;

static const entry ENTRIES[] = {
    {"crash", "follows a null link", crash},
    {"assert", "a failed assert()", assert_fails},
    {"abort", "calls abort()", aborts},
    {"exit", "calls exit(3)", exits},
    {"failed", "finds a sum that is wrong", fails},
    {"stack-overflow", "recurses until the stack ends", overflows},
    {"deadlock", "two threads wait for each other's mutex", deadlocks},
    {"memory-leak", "never frees one of a hundred blocks", leaks_memory},
    {"fd-leak", "opens files and never closes them", leaks_files},
    {"thread-leak", "starts threads and never stops them", leaks_threads},
    {"create-null", "CreateInstance returns NULL and does not say why", never},
    {"start-fails", "OnTestStart fails", never},
    WINDOWS_ENTRIES
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof ENTRIES[0] };

static const waylay_param_info AFTER = {sizeof AFTER, 0, "after", "{ uniform = { min = 0, max = 20 } }",
                                        "iterations that go well first"};
static const waylay_param_info *const PARAMS[] = {&AFTER};

static waylay_test_info infos[ENTRY_COUNT];
static const waylay_test_info *info_pointers[ENTRY_COUNT];
static waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "faults-c", .tests = info_pointers, .test_count = ENTRY_COUNT};

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
    if (strcmp(ENTRIES[i].name, args->test) != 0) continue;
    if (strcmp(args->test, "create-null") == 0) return NULL;
    fault *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->instance.size = sizeof made->instance;
    made->instance.OnTestStart = strcmp(args->test, "start-fails") == 0 ? start_and_fail : start_and_draw;
    made->instance.TestMain = iterate;
    made->services = args->services;
    made->context = args->context;
    made->after = args->services->distribution(args->context, "after");
    made->strike = ENTRIES[i].strike;
    return &made->instance;
  }
  return NULL;
}

void DestroyInstance(waylay_instance *instance) { free(instance); }
