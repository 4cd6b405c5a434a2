// clean
#include "wild.h"
static FILE *file;
static void *writes(void *x) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&m);
        fprintf(file, "%ld %d\n", (long)x, i);
        fflush(file);
        pthread_mutex_unlock(&m);
    }
    return 0;
}
int main(void) {
    assert(access("written", F_OK) != 0);
    file = fopen("written", "w+");
    run(3, writes);
    rewind(file);
    int lines = 0;
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    assert(lines == 30);
    fclose(file);
    return 0;
}
