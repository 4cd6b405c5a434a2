// Frees and grows what the library's constructor allocated.
#include <stdlib.h>
#include <unistd.h>

extern char *early_blocks[1000];

int main(void) {
    for (int i = 0; i < 1000; i++) {
        if (early_blocks[i][50] != 'e') _exit(9);
        if (i % 2) {
            early_blocks[i] = realloc(early_blocks[i], 5000);
            if (early_blocks[i][50] != 'e') _exit(9);
        }
        free(early_blocks[i]);
    }
    _exit(0);
}
