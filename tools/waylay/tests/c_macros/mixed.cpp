// The macros in C++: fields with constructors, and more alignment than malloc gives.
#include <cstdint>
#include <string>
#include <vector>

#include "waylay.h"

WAYLAY_TEST(mixed, "C++", param(count, "3", "how many"),
            fields(std::vector<std::string> seen; alignas(256) char line[256]), start, end);
static int32_t mixed_start(mixed *self) {
  WAYLAY_CHECK(self, self->context, reinterpret_cast<uintptr_t>(self->line) % 256 == 0, "not aligned");
  return WAYLAY_OK;
}
static int32_t mixed_main(mixed *self, waylay_context *worker) {
  const auto count = static_cast<size_t>(self->host->draw_int(worker, self->count));
  self->seen.assign(count, "a string that is longer than what fits into the string itself");
  return WAYLAY_OK;
}
static void mixed_end(mixed *self) {
  waylay_failf(self->host, self->context, "saw %d", static_cast<int>(self->seen.size()));
}
WAYLAY_TESTS("mixed", test(mixed));
