// What every zoo of known bugs has: `zoo NAME [fixed]` runs one animal once and exits 1 when its bug shows, 0 otherwise;
// `zoo NAME buggy|fixed RUNS` repeats it in-process, run after run, and prints how often the bug showed. A deadlock ends
// the process that runs into it, so the runs are made in a child, and another one goes on behind the one that deadlocked.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int fixed, bug;

struct animal {
    const char *name;
    void (*run)(void);
};

struct run_summary {
    uint64_t steps, switches, stretches;
    uint32_t threads, partly_controlled;
};

struct tally {
    long next, failures, deadlocks;
    uint64_t steps;
    uint32_t threads;
};

enum { DEADLOCKED = 86 };

static int repeat(void (*run)(void), void (*reset)(void), long runs) {
    int32_t (*begin_run)(uint64_t) = (int32_t(*)(uint64_t))dlsym(RTLD_DEFAULT, "waylay_control_begin_run");
    void (*end_run)(int32_t, struct run_summary *) =
        (void (*)(int32_t, struct run_summary *))dlsym(RTLD_DEFAULT, "waylay_control_end_run");
    if (!begin_run || !end_run) return 3;
    struct tally *tally = (struct tally *)mmap(0, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (tally->next < runs) {
        pid_t child = fork();
        if (child == 0) {
            while (tally->next < runs) {
                long number = tally->next++;
                reset();
                bug = 0;
                if (begin_run(number) != 0) _exit(4);
                run();
                struct run_summary summary;
                end_run(bug, &summary);
                tally->failures += bug;
                if (summary.steps > tally->steps) tally->steps = summary.steps;
                if (summary.threads > tally->threads) tally->threads = summary.threads;
            }
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child) return 5;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != DEADLOCKED) {
            fprintf(stderr, "run %ld: status %x\n", tally->next - 1, status);
            return 6;
        }
        tally->failures++;
        tally->deadlocks++;
    }
    printf("%ld %ld %u %lu\n", tally->failures, tally->deadlocks, tally->threads, (unsigned long)tally->steps);
    return 0;
}

static int visit(const struct animal *zoo, size_t count, void (*reset)(void), int argc, char **argv) {
    fixed = argc > 2 && !strcmp(argv[2], "fixed");
    for (size_t i = 0; i < count; i++)
        if (argc > 1 && !strcmp(argv[1], zoo[i].name)) {
            if (argc > 3) return repeat(zoo[i].run, reset, atol(argv[3]));
            reset();
            zoo[i].run();
            return bug;
        }
    return 2;
}
