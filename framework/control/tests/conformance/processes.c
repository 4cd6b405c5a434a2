// Processes that are started while other threads go on.
#include "case.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Handlers of fork hold the lock for the child, whatever other threads do meanwhile.
static int prepared, in_parent, handlers_are_there;
static bool forks;
static void before_fork(void) { if (forks) pthread_mutex_lock(&lock), prepared++; }
static void after_fork_in_parent(void) { if (forks) in_parent++, pthread_mutex_unlock(&lock); }
static void after_fork_in_child(void) { if (forks) pthread_mutex_unlock(&lock); }
static atomic_int stop;
static long pairs[2];
static void *keeps_pairs_equal(void *x) {
    while (!stop) {
        pthread_mutex_lock(&lock);
        pairs[0]++;
        pairs[1]++;
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return x;
}
CASE(forks_between_other_threads, "fork waitpid") {
    if (!handlers_are_there++) IS(pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child), 0);
    stop = prepared = in_parent = 0;
    forks = true;
    pthread_t worker = start(keeps_pairs_equal, 0);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        // The child can have the lock, and finds nothing half done.
        if (child == 0) _exit(pthread_mutex_lock(&lock) == 0 && pairs[0] == pairs[1] ? 7 : 8);
        int status;
        IS(waitpid(child, &status, 0), child);
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    stop = 1;
    joined(worker);
    forks = false;
    IS(prepared, 2);
    IS(in_parent, 2);
}

// Processes that threads start at the same time, each awaited by the thread that started it.
static void *starts_a_process(void *x) {
    pid_t child;
    int status;
    char code[] = "exit 3";
    code[5] += (int)(long)x;
    char *words[] = {"sh", "-c", code, 0};
    IS(posix_spawn(&child, "/bin/sh", 0, 0, words, environ), 0);
    IS(waitpid(child, &status, 0), child);
    IS(WEXITSTATUS(status), 3 + (long)x);
    return 0;
}
CASE(processes_of_several_threads, "posix_spawn waitpid") {
    pthread_t all[2] = {start(starts_a_process, (void *)0), start(starts_a_process, (void *)1)};
    joined(all[0]), joined(all[1]);
}
