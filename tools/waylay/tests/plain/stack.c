// A stack of records that are copied in and out, without a lock.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct record {
    long key;
    long parts[15];
};

struct stack {
    int top;
    struct record records[16];
};

static struct stack stack;
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void push(struct record record) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    stack.records[stack.top] = record;
    stack.top++;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

static int pop(struct record *to) {
    int any = 0;
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    if (stack.top > 0) {
        stack.top--;
        *to = stack.records[stack.top];
        any = 1;
    }
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return any;
}

static void *work(void *number) {
    struct record record;
    record.key = (long)number;
    for (int i = 0; i < 15; i++) record.parts[i] = record.key * 100 + i;
    push(record);
    push(record);
    struct record got;
    for (int i = 0; i < 2; i++) {
        assert(pop(&got));
        for (int j = 0; j < 15; j++) assert(got.parts[j] == got.key * 100 + j);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
