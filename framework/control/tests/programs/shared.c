// Objects that another process has, too, and that the program did not start: it answers after a while. By name of the argument; exits
// with 0. "anonymous" is memory that nobody else can have, and a deadlock.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct both {
    sem_t sem;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    int word, value;
} *s;
static sem_t *named;
static volatile int over;
static const char *what;
static int is(const char *other) { return !strcmp(what, other); }

static void make(void) {
    sem_init(&s->sem, 1, 0);
    pthread_mutexattr_t m;
    pthread_mutexattr_init(&m), pthread_mutexattr_setpshared(&m, 1), pthread_mutex_init(&s->mutex, &m);
    pthread_condattr_t c;
    pthread_condattr_init(&c), pthread_condattr_setpshared(&c, 1), pthread_cond_init(&s->cond, &c);
    pthread_barrierattr_t b;
    pthread_barrierattr_init(&b), pthread_barrierattr_setpshared(&b, 1), pthread_barrier_init(&s->barrier, &b, 2);
}

static void answer(int ready) {
    if (is("mutex")) pthread_mutex_lock(&s->mutex);
    CHECK(write(ready, "x", 1) == 1);
    close(0), close(1), close(2), close(ready);
    usleep(30000);
    if (is("named")) sem_post(named);
    if (is("file") || is("segment") || is("sleeper")) sem_post(&s->sem);
    if (is("barrier")) pthread_barrier_wait(&s->barrier);
    if (is("mutex") || is("condition")) {
        if (is("condition")) pthread_mutex_lock(&s->mutex);
        s->value = 1;
        pthread_cond_signal(&s->cond);
        pthread_mutex_unlock(&s->mutex);
    }
    if (is("futex")) {
        __atomic_store_n(&s->word, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &s->word, FUTEX_WAKE, 1, 0, 0, 0);
    }
    _exit(0);
}

// The other process begins before the run, and is no child of the program's.
__attribute__((constructor)) static void begin(int argc, char **argv) {
    what = argc > 1 ? argv[1] : "";
    if (argc < 2 || is("anonymous")) return;
    char name[64];
    snprintf(name, sizeof name, "/waylay-shared-%d", getpid());
    if (is("segment")) {
        int segment = shmget(IPC_PRIVATE, sizeof *s, 0600);
        s = shmat(segment, 0, 0);
        shmctl(segment, IPC_RMID, 0);
    } else {
        int file = shm_open(name, O_RDWR | O_CREAT, 0600);
        CHECK(file >= 0 && ftruncate(file, sizeof *s) == 0);
        s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file), shm_unlink(name);
    }
    CHECK(s != MAP_FAILED);
    make();
    named = sem_open(name, O_CREAT, 0600, 0);
    CHECK(named != SEM_FAILED && sem_unlink(name) == 0);
    int ends[2], status;
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) answer(ends[1]);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && read(ends[0], &byte, 1) == 1);
    close(ends[0]), close(ends[1]);
}

static void *nothing(void *unused) { return unused; }
static void *sleeps(void *unused) {
    while (!over) usleep(100);
    return unused;
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, is("sleeper") ? sleeps : nothing, 0) == 0);
    if (is("anonymous")) {
        s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        make();
        sem_wait(&s->sem);
    }
    if (is("named")) CHECK(sem_wait(named) == 0);
    if (is("file") || is("segment") || is("sleeper")) CHECK(sem_wait(&s->sem) == 0);
    if (is("barrier")) pthread_barrier_wait(&s->barrier);
    if (is("mutex") || is("condition")) {
        pthread_mutex_lock(&s->mutex);
        while (!s->value) pthread_cond_wait(&s->cond, &s->mutex);
        pthread_mutex_unlock(&s->mutex);
    }
    if (is("futex")) while (!__atomic_load_n(&s->word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, &s->word, FUTEX_WAIT, 0, 0, 0, 0);
    over = 1;
    return pthread_join(thread, 0);
}
