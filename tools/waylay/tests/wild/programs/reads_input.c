// clean
#include "wild.h"
static void *copies(void *x) {
    char line[100];
    while (fgets(line, sizeof line, stdin)) fputs(line, stdout);
    return x;
}
int main(void) {
    run(2, copies);
    return 0;
}
