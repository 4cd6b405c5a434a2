/* A machine that hands out numbers, one to each caller: the test notices a number that was drawn twice. */
#include <stdatomic.h>

#include "waylay.h"

enum { LOOKED_AT = 64 };

WAYLAY_TEST(draw, "a number that was drawn twice",
            fields(_Atomic long next; _Atomic char drawn[LOOKED_AT]));

static int32_t draw_main(draw *self, waylay_context *worker) {
  long number = atomic_load(&self->next);
  atomic_store(&self->next, number + 1); /* should be one atomic_fetch_add */
  if (number < LOOKED_AT) {
    WAYLAY_CHECK(self, worker, atomic_exchange(&self->drawn[number], 1) == 0, "%ld was drawn twice", number);
  }
  return WAYLAY_OK;
}

WAYLAY_TESTS("tickets", test(draw));
