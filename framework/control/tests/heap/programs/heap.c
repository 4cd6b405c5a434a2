// One behaviour per subcommand. Each prints, as `name value` lines, what the test compares with.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define CHECK(condition) do { if (!(condition)) { fprintf(stderr, "failed: %s, line %d\n", #condition, __LINE__); _exit(9); } } while (0)

void *volatile sink;
static uint64_t state = 88172645463325252u;
static unsigned pick(unsigned bound) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (unsigned)(state % bound);
}

typedef unsigned (*tag_function)(unsigned);
static tag_function heap_tag(void) {
    tag_function function = (tag_function)dlsym(RTLD_DEFAULT, "waylay_heap_tag");
    CHECK(function);
    return function;
}

NOINLINE static void leak_here(size_t size) { sink = malloc(size); memset(sink, 1, size); sink = 0; }
NOINLINE static void use_and_free(size_t size) { void *block = malloc(size); sink = block; free(block); sink = 0; }

static int leak(int count, size_t size) {
    for (int i = 0; i < count; i++) {
        leak_here(size);
        for (int j = 0; j < 9; j++) use_and_free(size);
    }
    return 0;
}

// Until killed: one block in fifty stays, and another fifty live a little longer than most.
NOINLINE static void hold_for_a_while(char **held, int at) { free(held[at % 50]); CHECK((held[at % 50] = malloc(900))); }
NOINLINE static void drip_once(char **held, int at) {
    leak_here(1000);
    for (int j = 0; j < 49; j++) use_and_free(1000);
    hold_for_a_while(held, at);
}
static int drip(void) {
    static char *held[50];
    for (int i = 0;; i++) { drip_once(held, i); usleep(1000); }
}

// Blocks move between two threads; every one is freed by the thread that did not allocate it.
static void *mailbox[64];
static int rounds;
NOINLINE static void *produce(void *unused) {
    (void)unused;
    for (int i = 0; i < rounds; i++) {
        char *block = malloc(16 + i % 500);
        block[0] = 'x';
        while (__atomic_load_n(&mailbox[i % 64], __ATOMIC_ACQUIRE)) sched_yield();
        __atomic_store_n(&mailbox[i % 64], block, __ATOMIC_RELEASE);
    }
    return 0;
}
NOINLINE static void *consume(void *unused) {
    (void)unused;
    for (int i = 0; i < rounds; i++) {
        char *block;
        while (!(block = __atomic_exchange_n(&mailbox[i % 64], (void *)0, __ATOMIC_ACQ_REL))) sched_yield();
        CHECK(block[0] == 'x');
        free(block);
    }
    return 0;
}
static int across(int count) {
    pthread_t threads[2];
    rounds = count;
    CHECK(!pthread_create(&threads[0], 0, produce, 0));
    CHECK(!pthread_create(&threads[1], 0, consume, 0));
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}

// Each thread churns blocks of its own pattern and checks them before they go.
NOINLINE static void *churn(void *number) {
    enum { LIVE = 256 };
    unsigned char *blocks[LIVE] = {0};
    size_t sizes[LIVE] = {0};
    uint64_t random = 0x9E3779B97F4A7C15u * ((uintptr_t)number + 1);
    for (int i = 0; i < rounds; i++) {
        random ^= random << 13; random ^= random >> 7; random ^= random << 17;
        int at = random % LIVE;
        size_t size = 1 + (random >> 32) % 3000;
        unsigned char mark = (unsigned char)(at ^ (uintptr_t)number);
        if (blocks[at]) CHECK(blocks[at][0] == mark && blocks[at][sizes[at] - 1] == mark);
        switch ((random >> 20) % 4) {
        case 0: free(blocks[at]); blocks[at] = malloc(size); break;
        case 1: blocks[at] = realloc(blocks[at], size); break;
        case 2: free(blocks[at]); CHECK(!posix_memalign((void **)&blocks[at], 64, size)); CHECK((uintptr_t)blocks[at] % 64 == 0); break;
        case 3: free(blocks[at]); blocks[at] = calloc(1, size); CHECK(!blocks[at][size - 1]); break;
        }
        CHECK(blocks[at]);
        sizes[at] = size;
        blocks[at][0] = blocks[at][size - 1] = mark;
    }
    for (int at = 0; at < LIVE; at++) free(blocks[at]);
    return 0;
}
static int stress(int threads, int count) {
    pthread_t ids[16];
    rounds = count;
    for (int i = 0; i < threads; i++) CHECK(!pthread_create(&ids[i], 0, churn, (void *)(uintptr_t)i));
    for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
    return 0;
}

// Live sizes after many reallocs, then a realloc that must fail and leave its block alone.
NOINLINE static void *grow_here(void *block, size_t size) { void *grown = realloc(block, size); sink = grown; return grown; }
static int reallocs(int count) {
    enum { LIVE = 100 };
    char *blocks[LIVE] = {0};
    size_t sizes[LIVE] = {0};
    for (int i = 0; i < count; i++) {
        int at = pick(LIVE);
        sizes[at] = 100 + pick(20000);
        blocks[at] = grow_here(blocks[at], sizes[at]);
        blocks[at][0] = 1;
    }
    for (int at = 0; at < LIVE; at++) if (blocks[at]) CHECK(!grow_here(blocks[at], SIZE_MAX / 4));
    CHECK(!reallocarray(blocks[0], SIZE_MAX / 2, 4));
    uint64_t live = 0;
    for (int at = 0; at < LIVE; at++) {
        if (at % 2) { CHECK(!realloc(blocks[at], 0)); }
        else if (blocks[at]) live += sizes[at];
    }
    printf("live %lu\n", live);
    return 0;
}

NOINLINE static int aligned(void) {
    void *block;
    CHECK(!posix_memalign(&block, 4096, 10001)); CHECK((uintptr_t)block % 4096 == 0); sink = block;
    CHECK((block = aligned_alloc(256, 20480))); CHECK((uintptr_t)block % 256 == 0); sink = block;
    CHECK((block = memalign(1024, 30003))); CHECK((uintptr_t)block % 1024 == 0); sink = block;
    CHECK((block = valloc(40004))); CHECK((uintptr_t)block % 4096 == 0); sink = block;
    CHECK((block = pvalloc(50005))); CHECK((uintptr_t)block % 4096 == 0); sink = block;
    CHECK((block = calloc(6, 10001))); CHECK(!((char *)block)[60005]); sink = block;
    CHECK((block = reallocarray(0, 7, 10001))); sink = block;
    CHECK((block = malloc(80008))); CHECK(malloc_usable_size(block) >= 80008); sink = block;
    CHECK(posix_memalign(&block, 3, 100) == 22);
    CHECK(!calloc(SIZE_MAX / 2, 4));
    CHECK(!malloc(SIZE_MAX - 100));
    for (int i = 0; i < 100; i++) { CHECK(!posix_memalign(&block, 64, 99999)); free(block); free(aligned_alloc(64, 99968)); free(0); }
    return 0;
}

NOINLINE static void child_work(char **blocks, int count) {
    for (int i = 0; i < count; i++) free(blocks[i]);
    for (int i = 0; i < 2000; i++) { sink = malloc(3000); memset(sink, 2, 3000); }
    void *block = malloc(5000);
    free(realloc(block, 9000));
}
// The children free what the parent still has, and allocate much. The parent must not notice.
static int forks(void) {
    enum { LIVE = 500 };
    char *blocks[LIVE];
    for (int i = 0; i < LIVE; i++) CHECK((blocks[i] = malloc(1000)));
    for (int i = 0; i < 3; i++) {
        pid_t child = i == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (!child) { child_work(blocks, LIVE); if (i == 1 && !fork()) { sink = malloc(70000); _exit(0); } _exit(0); }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(!system("test -n \"$WAYLAY_HEAP\" && sort /dev/null"));
    sink = blocks[LIVE - 1];
    printf("live %d\n", LIVE * 1000);
    return 0;
}

NOINLINE static void *leak_tagged(void *size) { leak_here((size_t)size); return 0; }
NOINLINE static void *leak_and_exit(void *size) { leak_here((size_t)size); pthread_exit(0); }
NOINLINE static void *leak_and_hang(void *size) { leak_here((size_t)size); for (;;) pause(); }
NOINLINE static void *start_another(void *size) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, 0, leak_tagged, size));
    pthread_join(thread, 0);
    return 0;
}
static int tags(void) {
    tag_function tag = heap_tag();
    pthread_t thread;
    CHECK(tag(7) == 0);
    leak_here(1000);
    CHECK(!pthread_create(&thread, 0, start_another, (void *)2000)); pthread_join(thread, 0);
    CHECK(tag(8) == 7);
    CHECK(!pthread_create(&thread, 0, leak_and_exit, (void *)4000)); pthread_join(thread, 0);
    CHECK(!pthread_create(&thread, 0, leak_and_hang, (void *)8000));
    usleep(1000);
    CHECK(!pthread_cancel(thread)); pthread_join(thread, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(!pthread_attr_setstacksize(&attributes, (size_t)1 << 46));
    CHECK(pthread_create(&thread, &attributes, leak_tagged, (void *)1));
    CHECK(tag(0) == 8);
    leak_here(16000);
    CHECK(!pthread_create(&thread, 0, leak_tagged, (void *)32000)); pthread_join(thread, 0);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int first = argc > 2 ? atoi(argv[2]) : 0, second = argc > 3 ? atoi(argv[3]) : 0;
    int status = 2;
    if (!strcmp(what, "leak")) status = leak(first, second);
    if (!strcmp(what, "drip")) status = drip();
    if (!strcmp(what, "across")) status = across(first);
    if (!strcmp(what, "stress")) status = stress(first, second);
    if (!strcmp(what, "reallocs")) status = reallocs(first);
    if (!strcmp(what, "aligned")) status = aligned();
    if (!strcmp(what, "forks")) status = forks();
    if (!strcmp(what, "tags")) status = tags();
    if (!strcmp(what, "idle")) { puts("ready"); fflush(stdout); leak_here(500000); for (;;) pause(); }
    fflush(stdout);
    _exit(status);
}
