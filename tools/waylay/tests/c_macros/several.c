#include "waylay.h"

/* Nothing but a main. */
WAYLAY_TEST(plain, "nothing");
static int32_t plain_main(plain *self, waylay_context *worker) {
  WAYLAY_CHECK(self, worker, self->host->seed(worker) != 7, "seed %d of %s", 7, "plain");
  return WAYLAY_DONE;
}

/* Every word of the list, a name that is no identifier, and a field that wants more than malloc gives. */
WAYLAY_TEST_NAMED(hot, "hot-lines", "a line that moves",
                  param(lines, "{ uniform = { min = 1, max = 3 } }", "how many"),
                  param_named(think, "think-time", "{ exponential = { min = \"0s\", max = \"1ms\" } }", "between"),
                  fields(_Alignas(256) char line[256]; int64_t drawn, thought; int started, told), takes("counter"),
                  takes("queue"), start, cancelled, end);
static int32_t hot_start(hot *self) {
  for (size_t i = 0; i < sizeof self->line; i++) WAYLAY_CHECK(self, self->context, self->line[i] == 0, "not zeroed");
  WAYLAY_CHECK(self, self->context, (uintptr_t)self->line % 256 == 0, "not aligned");
  self->started = 1;
  return WAYLAY_OK;
}
static int32_t hot_main(hot *self, waylay_context *worker) {
  int *counter = (int *)self->host->acquire(worker, "counter");
  self->drawn = self->host->draw_int(worker, self->lines);
  self->thought = (int64_t)self->host->draw_nanos(worker, self->think);
  WAYLAY_CHECK(self, worker, counter != NULL, "no counter");
  *counter += 1;
  return WAYLAY_OK;
}
static void hot_cancelled(hot *self) { self->told = 1; }
static void hot_end(hot *self) {
  waylay_failf(self->host, self->context, "drew %d, thought %d, started %d, told %d", (int)self->drawn,
               (int)self->thought, self->started, self->told);
}

WAYLAY_TEST(many, "combines", combines, param(a, "1", ""), param(b, "2", ""), param(c, "3", ""), param(d, "4", ""),
            param(e, "5", ""), param(f, "6", ""), param(g, "7", ""), param(h, "8", ""), param(i, "9", ""),
            param(j, "10", ""), param(k, "11", ""), param(l, "12", ""), param(m, "13", ""), param(n, "14", ""),
            param(o, "15", ""), param(p, "16", ""), param(q, "17", ""), param(r, "18", ""), param(s, "19", ""),
            param(t, "20", ""), param(u, "21", ""), param(v, "22", ""), param(w, "23", ""), param(x, "24", ""),
            param(y, "25", ""), param(z, "26", ""), param(aa, "27", ""), param(bb, "28", ""), param(cc, "29", ""),
            param(dd, "30", ""), param(ee, "31", ""));
static int32_t many_main(many *self, waylay_context *worker) {
  return (int32_t)self->host->draw_int(worker, self->ee);
}

static void *counter_create(void) { return calloc(1, sizeof(int)); }
static void counter_destroy(void *object) { free(object); }
static const waylay_kind_info counter = {sizeof counter,  0, "counter", "a number that tests share",
                                         counter_create, counter_destroy};

WAYLAY_TESTS("several", test(plain), test(hot), test(many), test(elsewhere), kind(counter));
