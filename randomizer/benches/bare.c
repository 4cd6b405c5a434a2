/* The least that suspends threads: bare PID SECONDS all|one. Prints suspensions per second.
   Each turn attaches to the threads (all but the first, or one of them at random), asks them to stop, waits until all
   have, and detaches. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int threads[4096], n = 0, pid = atoi(arguments[1]), all = !strcmp(arguments[3], "all");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder) return 1;
    for (struct dirent *entry; (entry = readdir(folder)) && n < 4096;) {
        int thread = atoi(entry->d_name);
        if (thread > 0 && thread != pid) threads[n++] = thread;
    }
    if (!n) return 1;
    long suspensions = 0;
    double start = now(), end = start + atof(arguments[2]);
    while (now() < end) {
        int *chosen = all ? threads : threads + rand() % n, k = all ? n : 1;
        for (int i = 0; i < k; i++) {
            if (ptrace(PTRACE_SEIZE, chosen[i], 0, 0)) return 1;
            if (ptrace(PTRACE_INTERRUPT, chosen[i], 0, 0)) return 1;
        }
        for (int i = 0; i < k; i++) {
            int status;
            if (waitpid(-1, &status, __WALL) < 0 || !WIFSTOPPED(status)) return 1;
        }
        for (int i = 0; i < k; i++) if (ptrace(PTRACE_DETACH, chosen[i], 0, 0)) return 1;
        suspensions += k;
    }
    printf("%f\n", suspensions / (now() - start));
    return 0;
}
