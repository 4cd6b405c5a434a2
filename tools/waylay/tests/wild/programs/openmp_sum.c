// finds: assert total == 6
// Threads of OpenMP add to one variable without a reduction.
#include <assert.h>
#include <omp.h>
int main(void) {
    int total = 0;
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < 3; i++) total += i + 1;
    assert(total == 6);
    return 0;
}
