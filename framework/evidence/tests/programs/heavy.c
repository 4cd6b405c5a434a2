/* Much memory in use, so that the kernel takes long to end the process once it is killed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    size_t bytes = (size_t)32 << 20;
    char *memory = aligned_alloc(4096, bytes);
    if (!memory) return 1;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory, 1, bytes);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
