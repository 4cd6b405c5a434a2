/* A test for Waylay: money moves between accounts, and none of it may appear or vanish.
 *
 * Replace the accounts by what you want to test. `waylay run` calls transfers_main again and again, on several workers at the
 * same time, with numbers from the distributions in waylay.toml. */
#include <pthread.h>

#include "waylay.h"

enum { OPENING = 1000, MOST = 64 };

typedef struct account {
  pthread_mutex_t lock;
  int64_t balance;
} account;

/* What this test is called, what it would notice, the numbers that it draws, what it keeps, and which calls it has. */
WAYLAY_TEST(transfers, "money that appears or vanishes when transfers overlap",
            param(accounts, "{ uniform = { min = 2, max = 16 } }", "how many accounts there are"),
            param(account, "{ uniform = { min = 0, max = 15 } }", "which account takes part"),
            param(action, "{ weighted = [{ min = 0, max = 0, p = 0.9 }, { min = 1, max = 1, p = 0.1 }] }",
                  "0: a transfer, 1: an audit of all accounts"),
            param(amount, "{ uniform = { min = 1, max = 100 } }", "what is transferred"),
            fields(size_t count; account all[MOST]), start, end);

static int32_t transfers_start(transfers *self) {
  self->count = waylay_draw_index(self->host, self->context, self->accounts, MOST + 1);
  if (self->count < 2) self->count = 2;
  for (size_t i = 0; i < self->count; i++) {
    WAYLAY_CHECK(self, self->context, pthread_mutex_init(&self->all[i].lock, NULL) == 0, "cannot make a mutex");
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
  WAYLAY_CHECK(self, context, sum == OPENING * (int64_t)self->count, "%lld in %zu accounts", (long long)sum, self->count);
  return WAYLAY_OK;
}

static int32_t transfers_main(transfers *self, waylay_context *worker) {
  if (waylay_draw_index(self->host, worker, self->action, 2) == 1) return audit(self, worker);
  size_t from = waylay_draw_index(self->host, worker, self->account, self->count);
  size_t to = waylay_draw_index(self->host, worker, self->account, self->count);
  transfer(self, from, to, self->host->draw_int(worker, self->amount));
  return WAYLAY_OK;
}

static void transfers_end(transfers *self) {
  audit(self, self->context);
  for (size_t i = 0; i < self->count; i++) pthread_mutex_destroy(&self->all[i].lock);
}

WAYLAY_TESTS("{{name}}", test(transfers));
