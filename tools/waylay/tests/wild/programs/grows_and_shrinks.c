// clean
#include "wild.h"
static void *grows(void *x) {
    int *numbers = 0;
    for (int n = 1; n < 60; n++) {
        numbers = realloc(numbers, n * sizeof *numbers);
        numbers[n - 1] = n;
        for (int i = 0; i < n; i++) assert(numbers[i] == i + 1);
    }
    numbers = realloc(numbers, 4);
    assert(numbers[0] == 1);
    free(numbers);
    char *large = malloc(1 << 20), *line = strdup("a line");
    free(large);
    free(line);
    free(0);
    return x;
}
int main(void) {
    run(3, grows);
    return 0;
}
