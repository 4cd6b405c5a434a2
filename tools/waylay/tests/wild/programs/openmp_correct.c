// clean
// What OpenMP offers to get it right: a reduction, a critical section, an atomic update, a lock, tasks, ordered output.
#include <omp.h>
#include <stdio.h>
static int fibonacci(int n) {
    int a, b;
    if (n < 2) return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}
int main(void) {
    int reduced = 0, critical = 0, atomic = 0, locked = 0, tasks = 0, cells[6] = {0};
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(3)
    {
#pragma omp for reduction(+ : reduced)
        for (int i = 0; i < 6; i++) reduced += i, cells[i] = i;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 6; i++) {
#pragma omp critical
            critical += cells[(i + 1) % 6];
#pragma omp atomic
            atomic += cells[5 - i];
            omp_set_lock(&lock);
            locked += cells[i];
            omp_unset_lock(&lock);
        }
#pragma omp single
        tasks = fibonacci(4);
    }
    omp_destroy_lock(&lock);
    printf("%d\n", reduced);
    return !(reduced == 15 && critical == 15 && atomic == 15 && locked == 15 && tasks == 3);
}
