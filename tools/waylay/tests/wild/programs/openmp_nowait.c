// finds: assert after[i]
// The second loop begins while others are in the first.
#include <assert.h>
#include <omp.h>
static int before[4], after[4];
int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 4; i++) before[i] = i + 1;
#pragma omp for schedule(static)
        for (int i = 0; i < 4; i++) after[i] = before[3 - i];
    }
    for (int i = 0; i < 4; i++) assert(after[i] == 4 - i);
    return 0;
}
