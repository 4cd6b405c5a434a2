// Tasks in a group and one behind it: the group's end orders them.
#include <stdio.h>

int main(void) {
    int result = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task
            result = 1;
        }
#pragma omp task
        result = 2;
    }
    printf("%d\n", result);
    return 0;
}
