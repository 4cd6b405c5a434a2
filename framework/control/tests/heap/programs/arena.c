// An allocator of its own: every block has a header, and a pointer without one is the end.
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct header { uint64_t magic, size; };
static const uint64_t MAGIC = 0x41524e4541524e45u;
static char space[64 << 20] __attribute__((aligned(64)));
static size_t used;
size_t arena_calls;

void *memalign(size_t alignment, size_t size) {
    __atomic_fetch_add(&arena_calls, 1, __ATOMIC_RELAXED);
    size_t room = (size + sizeof(struct header) + alignment + 15) & ~(size_t)15;
    size_t at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (size > sizeof space || at + room > sizeof space) return NULL;
    uintptr_t start = ((uintptr_t)space + at + sizeof(struct header) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    struct header *header = (struct header *)start - 1;
    header->magic = MAGIC;
    header->size = size;
    return (void *)start;
}
static struct header *check(void *pointer) {
    struct header *header = (struct header *)pointer - 1;
    if (header->magic != MAGIC) {
        static const char message[] = "foreign pointer\n";
        (void)!write(2, message, sizeof message - 1);
        _exit(9);
    }
    return header;
}
void *malloc(size_t size) { return memalign(16, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) { return (*result = memalign(alignment, size)) ? 0 : 12; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void free(void *pointer) { if (pointer) check(pointer)->magic = 0; }
void *realloc(void *pointer, size_t size) {
    if (!pointer) return malloc(size);
    struct header *header = check(pointer);
    void *moved = malloc(size);
    if (moved) memcpy(moved, pointer, header->size < size ? header->size : size), free(pointer);
    return moved;
}
size_t malloc_usable_size(void *pointer) { return pointer ? check(pointer)->size : 0; }
