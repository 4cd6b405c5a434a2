/* Message passing: data are written in some way, then a flag is set with a plain store. On x86 whoever sees the flag sees the
   data, however they were written, and however often others look in between. The way is the first argument. */
#include <assert.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int before, flag;
static struct { char lead; char bytes[200]; } __attribute__((packed)) data;
/* The compiler must not remember what it read, nor change the order of what it writes. */
#define FIRST (*(volatile char *)data.bytes)
#define AS_WRITTEN __asm__ volatile("" ::: "memory")
static char *block;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *way;
static int local_seen;
static int *volatile on_stack;

static int is(const char *name) { return strcmp(way, name) == 0; }

static void handler(int signal) { (void)signal; data.bytes[0] = 1; }

static __attribute__((noinline)) void fill_words(long *at) { __asm__ volatile("rep stosq" : "+D"(at) : "a"(0x0101010101010101), "c"(25) : "memory"); }
static __attribute__((noinline)) void copy_bytes(char *to, const char *from) { __asm__ volatile("nop; nop; nop; nop; movsb; nop; nop; nop; nop" : "+D"(to), "+S"(from) : : "memory"); }
#ifdef TIGHT
/* One that cannot be patched: a byte in front of the next function. */
static __attribute__((noinline)) void copy_tightly(char *to, const char *from) { __asm__ volatile("movsb" : "+D"(to), "+S"(from) : : "memory"); }
#endif

static int compare(const void *one, const void *other) { return *(const char *)one - *(const char *)other; }

static __attribute__((noinline)) void deep(int depth) {
    volatile char room[512];
    room[depth] = (char)depth;
    if (depth > 0) deep(depth - 1);
    assert(room[depth] == depth);
}

static void write_data(void) {
    static const char one = 1;
    if (is("byte")) data.bytes[0] = 1;
    else if (is("split")) *(volatile long *)(data.bytes + 3) = -1, data.bytes[0] = 1;
    else if (is("overlap")) {
        *(volatile long *)data.bytes = 0x0202020202020202;
        *(volatile int *)(data.bytes + 2) = 0x01010101;
        *(volatile char *)data.bytes = 1;
        assert(data.bytes[0] == 1 && data.bytes[1] == 2 && data.bytes[2] == 1 && data.bytes[7] == 2);
    }
    else if (is("vector")) _mm_storeu_si128((__m128i *)data.bytes, _mm_set1_epi8(1));
    else if (is("streaming")) _mm_stream_si32((int *)((long)(data.bytes + 4) & ~3L), 1), data.bytes[0] = 1;
    else if (is("words")) fill_words((long *)data.bytes);
    else if (is("string")) copy_bytes(data.bytes, &one);
#ifdef TIGHT
    else if (is("tight")) copy_tightly(data.bytes, &one);
#endif
    else if (is("memcpy")) memcpy(data.bytes, &one, 1);
    else if (is("memset")) memset(data.bytes, 1, sizeof data.bytes);
    else if (is("print")) sprintf(data.bytes, "%c", 1);
    else if (is("sort")) data.bytes[1] = 1, qsort(data.bytes, 2, 1, compare), data.bytes[0] = data.bytes[1];
    else if (is("signal")) raise(SIGUSR1);
    else if (is("free")) {
        /* A store to memory that is given back, and used by somebody else at once. */
        char *old = malloc(64);
        old[0] = 7;
        free(old);
        block = malloc(64);
        block[0] = 1;
        data.bytes[0] = 1;
    }
    else if (is("unmap")) {
        char *old = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        old[0] = old[4096] = 7;
        munmap(old, 8192);
        data.bytes[0] = 1;
    }
    else if (is("kernel")) {
        int ends[2];
        assert(pipe(ends) == 0 && write(ends[1], &one, 1) == 1 && read(ends[0], data.bytes, 1) == 1);
        close(ends[0]);
        close(ends[1]);
    }
    else if (is("stack")) {
        volatile int mine = 0;
        on_stack = (int *)&mine;
        mine = 1;
        deep(8);
        data.bytes[0] = (char)mine;
        on_stack = NULL;
    }
    else if (is("update")) data.bytes[0]++;
    else if (is("mutex")) {
        pthread_mutex_lock(&mutex);
        data.bytes[0] = 1;
        pthread_mutex_unlock(&mutex);
    }
    else abort();
}

static void *writer(void *argument) {
    before = 1;
    write_data();
    AS_WRITTEN;
    flag = 1;
    assert(flag == 1 && before == 1 && FIRST == 1);
    return argument;
}

static void *reader(void *argument) {
    if (on_stack) local_seen++;
    if (is("mutex")) {
        pthread_mutex_lock(&mutex);
        if (FIRST) assert(before == 1);
        pthread_mutex_unlock(&mutex);
    }
    if (FIRST) assert(before == 1);
    if (flag) assert(FIRST == 1 && before == 1);
    return argument;
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    way = arguments[1];
    signal(SIGUSR1, handler);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(flag == 1 && data.bytes[0] == 1 && before == 1);
    if (block) assert(block[0] == 1);
    return 0;
}
