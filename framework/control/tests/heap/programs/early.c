// A library whose constructor allocates before the accounting begins.
#include <stdlib.h>
#include <string.h>

char *early_blocks[1000];

__attribute__((constructor)) static void allocate_early(void) {
    for (int i = 0; i < 1000; i++) {
        early_blocks[i] = malloc(100 + i);
        memset(early_blocks[i], 'e', 100 + i);
    }
}
