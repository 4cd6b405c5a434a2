/* Blocks at the place named by its argument. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEVER_INLINED __attribute__((noinline, noclone))

volatile int sink;
static int fork_result;

static void say_ready(void) {
    puts("ready");
    fflush(stdout);
}

NEVER_INLINED void block_here(void) { for (;;) { pause(); sink++; } }

NEVER_INLINED void in_handler(int signal) { sink = signal; say_ready(); block_here(); sink++; }
NEVER_INLINED void interrupted(void) {
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    for (;;) sink++;
}
static void *handler_thread(void *unused) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, 0);
    sigaction(SIGUSR1, &action, 0);
    interrupted();
    sink++;
    return unused;
}

NEVER_INLINED int deeper(int depth) {
    volatile char room[64];
    room[depth % 64] = (char)depth;
    if (depth == 0) { say_ready(); block_here(); }
    return (depth ? deeper(depth - 1) : 0) + room[3];
}

/* The alignment together with the variable size makes the compiler find its frame through memory. */
NEVER_INLINED void realigned(int size) {
    volatile char aligned[64] __attribute__((aligned(64)));
    char *room = alloca(size);
    memset(room, 1, size);
    aligned[0] = room[size / 2];
    say_ready();
    block_here();
    sink += aligned[0] + room[0];
}
NEVER_INLINED void before_realigned(int size) { volatile long keep[7] = {0}; realigned(size); sink += (int)keep[3]; }

NEVER_INLINED void in_child(void) {
    printf("%d\n", getpid());
    fflush(stdout);
    block_here();
    sink++;
}

static void *outlive(void *unused) { say_ready(); block_here(); return unused; }

int main(int count, char **arguments) {
    const char *place = count > 1 ? arguments[1] : "plain";
    pthread_t thread;
    if (!strcmp(place, "handler")) {
        pthread_create(&thread, 0, handler_thread, 0);
        pthread_join(thread, 0);
    }
    if (!strcmp(place, "deep")) sink = deeper(20000);
    if (!strcmp(place, "realigned")) before_realigned(100 + count);
    if (!strcmp(place, "fork")) {
        say_ready();
        fork_result = fork();
        if (fork_result == 0) in_child();
        block_here();
    }
    /* The parent of a vfork cannot be stopped until its child has gone on. */
    if (!strcmp(place, "vfork")) {
        say_ready();
        if (vfork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
    }
    if (!strcmp(place, "leaderless")) {
        pthread_create(&thread, 0, outlive, 0);
        pthread_exit(0);
    }
    say_ready();
    block_here();
    sink++;
}
