// A library with a thread that its destructor stops: with LIBRARY defined the library, otherwise a program that uses it. Exits 0.
#ifdef LIBRARY
#include <pthread.h>

static pthread_t thread;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int work, done, end;

static void *serves(void *unused) {
    pthread_mutex_lock(&guard);
    while (!end) {
        for (; work; work--) done++;
        pthread_cond_broadcast(&changed);
        pthread_cond_wait(&changed, &guard);
    }
    pthread_mutex_unlock(&guard);
    return unused;
}

void do_work(void) {
    pthread_mutex_lock(&guard);
    if (!thread) pthread_create(&thread, 0, serves, 0);
    int before = done;
    work++;
    pthread_cond_broadcast(&changed);
    while (done == before) pthread_cond_wait(&changed, &guard);
    pthread_mutex_unlock(&guard);
}

__attribute__((destructor)) static void stop(void) {
    if (!thread) return;
    pthread_mutex_lock(&guard);
    end = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&guard);
    pthread_join(thread, 0);
}
#else
void do_work(void);

int main(void) {
    do_work();
    do_work();
    return 0;
}
#endif
