// What orders threads of OpenMP: `way`, or the same with the order left out: `way broken`.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int cells[4], total;
static omp_lock_t lock;

static void reduction(int broken) {
    int sum = 0;
    if (broken) {
#pragma omp parallel for num_threads(2)
        for (int i = 0; i < 4; i++) total += i;
    } else {
#pragma omp parallel for num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 4; i++) sum += i;
        total = sum;
    }
}

static void critical(int broken) {
#pragma omp parallel num_threads(2)
    if (broken && omp_get_thread_num()) {
        total++;
    } else {
#pragma omp critical
        total++;
    }
}

static void barrier(int broken) {
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
        cells[me] = me + 1;
        if (!broken) {
#pragma omp barrier
        }
        cells[me + 2] = cells[1 - me];
    }
}

static void locked(int broken) {
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        int holds = !(broken && omp_get_thread_num());
        if (holds) omp_set_lock(&lock);
        total++;
        if (holds) omp_unset_lock(&lock);
    }
}

static void task(int broken) {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        cells[0] = 1;
        if (!broken) {
#pragma omp taskwait
        }
        cells[1] = cells[0] + 1;
    }
}

int main(int count, char **arguments) {
    int broken = count > 2;
    const char *way = arguments[1];
    if (strcmp(way, "reduction") == 0) reduction(broken);
    else if (strcmp(way, "critical") == 0) critical(broken);
    else if (strcmp(way, "barrier") == 0) barrier(broken);
    else if (strcmp(way, "lock") == 0) locked(broken);
    else if (strcmp(way, "task") == 0) task(broken);
    else return 2;
    return 0;
}
