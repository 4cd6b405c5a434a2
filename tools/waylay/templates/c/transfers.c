/* A test for Waylay: money moves between accounts, and none of it may appear or vanish.
 *
 * Replace the accounts by what you want to test. `waylay run` calls TestMain again and again, on several workers at the
 * same time, with numbers from the distributions in waylay.toml. */
#include <pthread.h>
#include <stdlib.h>

#include "waylay.h"

enum { OPENING = 1000, MOST = 64 };

typedef struct account {
  pthread_mutex_t lock;
  int64_t balance;
} account;

/* One live test. The instance comes first, so that the host's pointer is ours. */
typedef struct transfers {
  waylay_instance instance;
  const waylay_services *host;
  waylay_context *context;
  const waylay_distribution *accounts, *account, *action, *amount;
  size_t count;
  account all[MOST];
} transfers;

static int32_t on_test_start(waylay_instance *instance) {
  transfers *self = (transfers *)instance;
  self->count = waylay_draw_index(self->host, self->context, self->accounts, MOST + 1);
  if (self->count < 2) self->count = 2;
  for (size_t i = 0; i < self->count; i++) {
    if (pthread_mutex_init(&self->all[i].lock, NULL) != 0) {
      waylay_fail(self->host, self->context, "cannot make a mutex");
      return WAYLAY_FAILED;
    }
    self->all[i].balance = OPENING;
  }
  return WAYLAY_OK;
}

/* Locks in the order of the accounts, whichever way the money goes. Lock `from` first instead, and Waylay finds the
 * deadlock. */
static void transfer(transfers *self, size_t from, size_t to, int64_t amount) {
  if (from == to) return;
  account *low = &self->all[from < to ? from : to], *high = &self->all[from < to ? to : from];
  pthread_mutex_lock(&low->lock);
  pthread_mutex_lock(&high->lock);
  self->all[from].balance -= amount;
  self->all[to].balance += amount;
  pthread_mutex_unlock(&high->lock);
  pthread_mutex_unlock(&low->lock);
}

static int32_t audit(transfers *self, waylay_context *context) {
  int64_t sum = 0;
  for (size_t i = 0; i < self->count; i++) pthread_mutex_lock(&self->all[i].lock);
  for (size_t i = 0; i < self->count; i++) sum += self->all[i].balance;
  for (size_t i = 0; i < self->count; i++) pthread_mutex_unlock(&self->all[i].lock);
  if (sum == OPENING * (int64_t)self->count) return WAYLAY_OK;
  waylay_failf(self->host, context, "%lld in %zu accounts", (long long)sum, self->count);
  return WAYLAY_FAILED;
}

static int32_t test_main(waylay_instance *instance, waylay_context *worker) {
  transfers *self = (transfers *)instance;
  if (waylay_draw_index(self->host, worker, self->action, 2) == 1) return audit(self, worker);
  size_t from = waylay_draw_index(self->host, worker, self->account, self->count);
  size_t to = waylay_draw_index(self->host, worker, self->account, self->count);
  transfer(self, from, to, self->host->draw_int(worker, self->amount));
  return WAYLAY_OK;
}

static void on_test_end(waylay_instance *instance) {
  transfers *self = (transfers *)instance;
  audit(self, self->context);
  for (size_t i = 0; i < self->count; i++) pthread_mutex_destroy(&self->all[i].lock);
}

/* What the host reads before it runs anything. */
static const waylay_param_info ACCOUNTS = {sizeof ACCOUNTS, 0, "accounts", "{ uniform = { min = 2, max = 16 } }",
                                           "how many accounts there are"};
static const waylay_param_info ACCOUNT = {sizeof ACCOUNT, 0, "account", "{ uniform = { min = 0, max = 15 } }",
                                          "which account takes part"};
static const waylay_param_info ACTION = {
    sizeof ACTION, 0, "action", "{ weighted = [{ min = 0, max = 0, p = 0.9 }, { min = 1, max = 1, p = 0.1 }] }",
    "0: a transfer, 1: an audit of all accounts"};
static const waylay_param_info AMOUNT = {sizeof AMOUNT, 0, "amount", "{ uniform = { min = 1, max = 100 } }",
                                         "what is transferred"};
static const waylay_param_info *const PARAMS[] = {&ACCOUNTS, &ACCOUNT, &ACTION, &AMOUNT};
static const waylay_test_info TRANSFERS = {.size = sizeof TRANSFERS,
                                           .name = "transfers",
                                           .about = "money that appears or vanishes when transfers overlap",
                                           .params = PARAMS,
                                           .param_count = 4};
static const waylay_test_info *const TESTS[] = {&TRANSFERS};
static const waylay_plugin_info PLUGIN = {
    .size = sizeof PLUGIN, .abi_version = WAYLAY_ABI_VERSION, .name = "{{name}}", .tests = TESTS, .test_count = 1};

const waylay_plugin_info *WaylayPlugin(void) { return &PLUGIN; }

waylay_instance *CreateInstance(const waylay_create_args *args) {
  transfers *self;
  if (strcmp(args->test, TRANSFERS.name) != 0) return NULL;
  self = calloc(1, sizeof *self);
  if (self == NULL) return NULL;
  self->instance.size = sizeof self->instance;
  self->instance.OnTestStart = on_test_start;
  self->instance.TestMain = test_main;
  self->instance.OnTestEnd = on_test_end;
  self->host = args->services;
  self->context = args->context;
  self->accounts = self->host->distribution(self->context, "accounts");
  self->account = self->host->distribution(self->context, "account");
  self->action = self->host->distribution(self->context, "action");
  self->amount = self->host->distribution(self->context, "amount");
  return &self->instance;
}

void DestroyInstance(waylay_instance *instance) { free(instance); }
