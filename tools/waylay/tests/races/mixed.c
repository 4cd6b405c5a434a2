// A word that one thread updates atomically and another accesses plainly: a race in every way.
#include <pthread.h>
#include <string.h>

static int count, copy;

static void *updates(void *unused) {
    __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *reads(void *unused) {
    copy = count;
    return unused;
}

static void *writes(void *unused) {
    count = 5;
    return unused;
}

static void *adds(void *unused) {
    count += 2;
    return unused;
}

int main(int arguments, char **argument) {
    const char *way = arguments > 1 ? argument[1] : "";
    void *(*other)(void *) = strcmp(way, "read") == 0 ? reads : strcmp(way, "write") == 0 ? writes : adds;
    pthread_t one, two;
    pthread_create(&one, NULL, updates, NULL);
    pthread_create(&two, NULL, other, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return copy > 9;
}
