/* A test in a file of its own. */
#include "waylay.h"

WAYLAY_TEST(elsewhere, "another file", param(status, "2", "what it returns"));
static int32_t elsewhere_main(elsewhere *self, waylay_context *worker) {
  return (int32_t)self->host->draw_int(worker, self->status);
}
