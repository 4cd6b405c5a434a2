/* A program under `waylay explore` that writes over the memory which it shares with the driver: where that is, it finds in its own
   list of mappings. What lies where in it, it is told. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *mode;
static unsigned char *region;
static size_t size;
/* Places in the region. */
static size_t report, parameters, schedule, conversation;

static int is(const char *wanted) { return strcmp(mode, wanted) == 0; }

static void find(void) {
    char line[512], rights[8];
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "waylay-control") && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w') {
            region = (unsigned char *)from;
            size = to - from;
        }
    if (maps) fclose(maps);
}

static void put(size_t at, uint64_t value) { memcpy(region + at, &value, 8); }
static void put_small(size_t at, uint32_t value) { memcpy(region + at, &value, 4); }

/* All that is in use, and some bytes of each megabyte behind it: to touch all of it takes a gigabyte. */
static void over(size_t from, int fill) {
    static uint64_t seed = 88172645463325252u;
    for (size_t at = from; at + 4096 <= size; at += at < (3u << 20) ? 4096 : 1u << 20) {
        if (fill >= 0) memset(region + at, fill, 4096);
        for (int word = 0; fill < 0 && word < 512; word++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            put(at + word * 8, seed);
        }
    }
    memset(region + schedule, fill >= 0 ? fill : 0x6b, 1 << 16);
    memset(region + conversation, fill >= 0 ? fill : 0x6b, 1 << 16);
}

/* Threads that do not exist, and so many steps that their sum has no room. */
static void lie_in_lists(uint64_t thread_and_event, uint64_t steps, uint64_t sentence) {
    for (int entry = 0; entry < 64; entry++) {
        put(schedule + entry * 16, thread_and_event);
        put(schedule + entry * 16 + 8, steps);
        put(conversation + entry * 32, sentence);
    }
}

static void attack(void) {
    if (!region) return;
    if (is("zero")) over(0, 0);
    if (is("ones")) over(0, 0xff);
    if (is("random")) over(0, -1);
    if (is("behind-the-head")) over(parameters, 0xff);
    if (is("head")) put(0, 1);
    if (is("settings")) memset(region + 16, 0x11, 64);
    if (is("report")) memset(region + report, 0xff, parameters - report);
    if (is("counts"))
        for (size_t at = report; at + 8 <= parameters; at += 8) put(at, UINT64_C(1) << 40);
    if (is("ending")) put_small(report, 77);
    if (is("refused")) put_small(report, 4);
    if (is("threads")) lie_in_lists(0xfffffff0u, 1, UINT64_C(0xfffffff0) << 32 | 1);
    if (is("steps")) lie_in_lists(1, UINT64_MAX, UINT64_C(1) << 32 | 4);
    if (is("events")) lie_in_lists(UINT64_C(200) << 32 | 1, 1, 77);
}

static void *work(void *last) {
    for (int round = 0; round < 4; round++) {
        pthread_mutex_lock(&lock);
        if (is("flips") && region)
            for (size_t at = report; at < parameters; at += 3) region[at] |= (unsigned char)(at * 37 + round);
        pthread_mutex_unlock(&lock);
        if (last && round == 2) attack();
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    if (count != 6) return 9;
    mode = arguments[1];
    report = strtoul(arguments[2], NULL, 10);
    parameters = strtoul(arguments[3], NULL, 10);
    schedule = strtoul(arguments[4], NULL, 10);
    conversation = strtoul(arguments[5], NULL, 10);
    find();
    for (intptr_t number = 0; number < 2; number++) pthread_create(&threads[number], NULL, work, (void *)number);
    for (int number = 0; number < 2; number++) pthread_join(threads[number], NULL);
    if (is("last-of-all")) {
        put(report + 8, UINT64_MAX);
        put(0, 1);
        _exit(0);
    }
    return 0;
}
