/* Peterson's lock as it is in textbooks. Without a fence between the stores and the load, both threads of an x86 machine get
   it: the load may be done before the stores are seen. */
#include <assert.h>
#include <pthread.h>

static volatile int flag[2], turn;
static volatile int owner = -1;

static void lock(int me) {
    flag[me] = 1;
    turn = !me;
#ifdef FIXED
    __asm__ volatile("mfence" ::: "memory");
#endif
    while (flag[!me] && turn == !me) __asm__ volatile("pause");
}

static void unlock(int me) { flag[me] = 0; }

static void *work(void *argument) {
    int me = argument != NULL;
    lock(me);
    owner = me;
    assert(owner == me);
    unlock(me);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, &thread);
    work(NULL);
    pthread_join(thread, NULL);
    return 0;
}
