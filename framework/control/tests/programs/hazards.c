// What programs do that a scheduler in the process must survive, by name of the argument. Exits 0 unless said otherwise.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static __thread int mine = -1;
static int ends[2];

static void pair(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t a, b;
    CHECK(pthread_create(&a, 0, first, 0) == 0);
    CHECK(pthread_create(&b, 0, second, 0) == 0);
    CHECK(pthread_join(a, 0) == 0);
    CHECK(pthread_join(b, 0) == 0);
}

static void some_steps(int count) {
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&guard);
        pthread_mutex_unlock(&guard);
    }
}

// --- waiting for descriptors ---

static void *reads_pipe(void *unused) {
    char text[4] = "";
    mine = 5;
    CHECK(read(ends[0], text, 3) == 3 && mine == 5);
    CHECK(!strcmp(text, "hey"));
    return unused;
}
static void *writes_pipe(void *unused) {
    some_steps(5);
    CHECK(write(ends[1], "hey", 3) == 3);
    return unused;
}
static void pipe_between_threads(void) {
    CHECK(pipe(ends) == 0);
    pair(reads_pipe, writes_pipe);
}

static void *fills_pipe(void *unused) {
    char block[4096] = {1};
    for (int i = 0; i < 40; i++) CHECK(write(ends[1], block, sizeof block) == sizeof block);
    close(ends[1]);
    return unused;
}
static void *drains_pipe(void *unused) {
    char block[4096];
    long total = 0, n;
    while ((n = read(ends[0], block, sizeof block)) > 0) total += n;
    CHECK(total == 40 * 4096);
    return unused;
}
static void full_pipe(void) {
    CHECK(pipe(ends) == 0);
    pair(fills_pipe, drains_pipe);
}

static void *polls(void *unused) {
    struct pollfd set = {ends[0], POLLIN, 0};
    int ready;
    while ((ready = poll(&set, 1, 60000)) == 0);
    CHECK(ready == 1 && set.revents & POLLIN);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(ends[0], &in);
    CHECK(select(ends[0] + 1, &in, 0, 0, 0) == 1 && FD_ISSET(ends[0], &in));
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u32 = 77}}, seen;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_wait(epoll, &seen, 1, -1) == 1 && seen.data.u32 == 77);
    char text[8];
    CHECK(recv(ends[0], text, sizeof text, 0) == 3);
    CHECK(recv(ends[0], text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(poll(&set, 1, 0) == 0);
    CHECK(poll(&set, 1, 1000) == 0);
    return unused;
}
static void *sends(void *unused) {
    some_steps(3);
    CHECK(send(ends[1], "hey", 3, 0) == 3);
    return unused;
}
static void polling(void) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pair(polls, sends);
}

static int counter_fd;
static void *waits_for_event(void *unused) {
    eventfd_t value;
    CHECK(eventfd_read(counter_fd, &value) == 0 && value == 3);
    return unused;
}
static void *sends_event(void *unused) {
    some_steps(3);
    CHECK(eventfd_write(counter_fd, 3) == 0);
    return unused;
}
static void event_descriptor(void) {
    counter_fd = eventfd(0, 0);
    pair(waits_for_event, sends_event);
}

// The other end is a process: nobody in this one can make it ready.
static void *reads_child(void *unused) {
    char text[4] = "";
    CHECK(read(ends[0], text, 3) == 3 && !strcmp(text, "hey"));
    return unused;
}
static void *computes(void *unused) {
    some_steps(20);
    return unused;
}
static void from_outside(void) {
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct timespec nap = {0, 20000000};
        nanosleep(&nap, 0);
        CHECK(write(ends[1], "hey", 3) == 3);
        _exit(0);
    }
    pair(reads_child, computes);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// The child needs its reader while another thread waits for it in the kernel.
static pid_t writing_child;
static void *reads_it_all(void *unused) {
    char block[4096];
    long total = 0, n;
    while ((n = read(ends[0], block, sizeof block)) > 0) total += n;
    CHECK(total == 300000);
    return unused;
}
static void *waits_for_child(void *unused) {
    int status;
    CHECK(waitpid(writing_child, &status, 0) == writing_child && status == 0);
    return unused;
}
static void child_with_pipe(void) {
    CHECK(pipe(ends) == 0);
    writing_child = fork();
    if (writing_child == 0) {
        static char text[300000];
        close(ends[0]);
        usleep(20000);
        for (long done = 0; done < (long)sizeof text;) done += write(ends[1], text + done, sizeof text - done);
        _exit(0);
    }
    close(ends[1]);
    pair(reads_it_all, waits_for_child);
}

// --- signals ---

static sigjmp_buf *volatile back;
static __thread sigjmp_buf here;
static atomic_int handled;
static void on_fault(int number) {
    CHECK(mine == 9);
    handled++;
    siglongjmp(here, number);
}
static void *faults(void *unused) {
    mine = 9;
    if (!sigsetjmp(here, 1)) *(volatile int *)0 = 1;
    some_steps(2);
    return unused;
}
static void fault_handler(void) {
    (void)back;
    signal(SIGSEGV, on_fault);
    pair(faults, faults);
    CHECK(handled == 2);
}

static atomic_int handler_saw;
static pthread_t target;
static void on_user_signal(int number) {
    handler_saw = mine;
    (void)number;
}
static void *is_signalled(void *unused) {
    mine = 77;
    while (!handler_saw) sched_yield();
    return unused;
}
static void *signals_it(void *unused) {
    some_steps(2);
    CHECK(pthread_kill(target, SIGUSR1) == 0);
    return unused;
}
static void kill_thread(void) {
    signal(SIGUSR1, on_user_signal);
    pthread_t other;
    pthread_create(&target, 0, is_signalled, 0);
    pthread_create(&other, 0, signals_it, 0);
    pthread_join(other, 0);
    pthread_join(target, 0);
    CHECK(handler_saw == 77 || handler_saw == -1);
}

static sem_t from_handler;
static void on_signal_post(int number) {
    sem_post(&from_handler);
    (void)number;
}
static void *waits_for_semaphore(void *unused) {
    while (sem_wait(&from_handler)) CHECK(errno == EINTR);
    return unused;
}
static void handler_posts(void) {
    signal(SIGUSR1, on_signal_post);
    sem_init(&from_handler, 0, 0);
    pthread_t waiter;
    pthread_create(&waiter, 0, waits_for_semaphore, 0);
    CHECK(raise(SIGUSR1) == 0);
    pthread_join(waiter, 0);
}

static void *blocks_signal(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    some_steps(3);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, 0, &now);
    CHECK(sigismember(&now, SIGUSR2));
    return unused;
}
static void *has_none_blocked(void *unused) {
    some_steps(3);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, 0, &now);
    CHECK(!sigismember(&now, SIGUSR2));
    return unused;
}
static void signal_masks(void) { pair(blocks_signal, has_none_blocked); }

static void *has_alternate_stack(void *unused) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    CHECK(sigaltstack(&stack, 0) == 0);
    some_steps(2);
    stack.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&stack, 0) == 0);
    free(stack.ss_sp);
    return unused;
}
static void alternate_stacks(void) { pair(has_alternate_stack, has_alternate_stack); }

// --- cancellation ---

static atomic_int cleaned;
static void cleans(void *unused) { cleaned++; }
static void *runs_until_cancelled(void *unused) {
    pthread_cleanup_push(cleans, 0);
    for (;;) {
        sched_yield();
        pthread_testcancel();
    }
    pthread_cleanup_pop(0);
    return unused;
}
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void unlocks(void *unused) {
    cleaned++;
    CHECK(pthread_mutex_unlock(&guard) == 0);
}
static void *waits_until_cancelled(void *unused) {
    pthread_mutex_lock(&guard);
    pthread_cleanup_push(unlocks, 0);
    for (;;) pthread_cond_wait(&never, &guard);
    pthread_cleanup_pop(0);
    return unused;
}
static void *sleeps_until_cancelled(void *unused) {
    pthread_cleanup_push(cleans, 0);
    for (;;) sleep(1000);
    pthread_cleanup_pop(0);
    return unused;
}
static void cancellation(void) {
    void *(*routines[])(void *) = {runs_until_cancelled, waits_until_cancelled, sleeps_until_cancelled};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, 0, routines[i], 0) == 0);
        some_steps(2);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(cleaned == i + 1);
    }
    CHECK(pthread_mutex_trylock(&guard) == 0);
}

static sem_t no_post;
static void *waits_for_a_post(void *unused) {
    pthread_cleanup_push(cleans, 0);
    for (;;) sem_wait(&no_post);
    pthread_cleanup_pop(0);
    return unused;
}
// The request may come anywhere, also between the look for it at the beginning of a call and the wait.
static void cancelled_before_waiting(void) {
    void *(*routines[])(void *) = {waits_until_cancelled, sleeps_until_cancelled, waits_for_a_post};
    sem_init(&no_post, 0, 0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, 0, routines[i], 0) == 0);
        CHECK(pthread_cancel(thread) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    CHECK(pthread_mutex_trylock(&guard) == 0);
}

// --- ending from within ---

static pthread_key_t leaves_last;
static atomic_int left, destroyed;
static void is_destroyed(void *value) {
    CHECK(value == &left);
    some_steps(1);
    destroyed++;
}
static void leaves(long number) {
    int here = 0;
    pthread_cleanup_push(cleans, 0);
    if (number > 0) leaves(number - 1);
    pthread_setspecific(leaves_last, &left);
    left++;
    pthread_exit(&left);
    pthread_cleanup_pop(0);
    CHECK(here == 1);
}
static void *leaves_from_within(void *number) {
    some_steps(1);
    leaves((long)number);
    return 0;
}
static void *returns_as_usual(void *number) {
    some_steps(1);
    CHECK(pthread_getspecific(leaves_last) == 0);
    pthread_testcancel();
    return number;
}
static void leaving_from_within(void) {
    CHECK(pthread_key_create(&leaves_last, is_destroyed) == 0);
    for (long round = 1; round <= 6; round++) {
        pthread_t threads[2];
        void *results[2];
        pthread_create(&threads[0], 0, leaves_from_within, (void *)2);
        pthread_create(&threads[1], 0, round % 2 ? leaves_from_within : returns_as_usual, (void *)2);
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], &results[i]) == 0);
        CHECK(results[0] == &left && results[1] == (round % 2 ? (void *)&left : (void *)2));
    }
    CHECK(left == 9 && destroyed == 9 && cleaned == 27);
    pthread_exit(0);
}

static void *is_detached(void *unused) {
    pthread_detach(pthread_self());
    left++;
    pthread_exit(0);
    return unused;
}
static void leaving_unnoticed(void) {
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, 0, is_detached, 0) == 0);
        while (left <= i) sched_yield();
    }
}

static pthread_t main_thread;
static void *joins_main(void *unused) {
    void *result;
    CHECK(pthread_join(main_thread, &result) == 0 && result == &left);
    puts("main is joined");
    return unused;
}
static void main_is_joined(void) {
    main_thread = pthread_self();
    pthread_t thread;
    pthread_create(&thread, 0, joins_main, 0);
    pthread_exit(&left);
}

// --- processes ---

static void *forks(void *unused) {
    some_steps(1);
    pid_t child = fork();
    if (child == 0) {
        CHECK(getpid() == gettid() && getpid() == syscall(SYS_gettid));
        some_steps(3);
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    return unused;
}
static void forking(void) { pair(forks, forks); }

static void *uses_the_shell(void *unused) {
    CHECK(system("exit 3") >> 8 == 3);
    FILE *out = popen("echo hi", "r");
    char text[8] = "";
    CHECK(fgets(text, sizeof text, out) && !strcmp(text, "hi\n"));
    CHECK(pclose(out) == 0);
    CHECK(dlopen("libm.so.6", RTLD_NOW));
    return unused;
}
static void shell(void) { pair(uses_the_shell, uses_the_shell); }

static void *sets_group(void *unused) {
    CHECK(setgid(getgid()) == 0);
    some_steps(2);
    return unused;
}
static void credentials(void) { pair(sets_group, sets_group); }

// --- the rest ---

static void *prints_as_one(void *unused) {
    flockfile(stdout);
    fputs("one ", stdout);
    sched_yield();
    fputs("line\n", stdout);
    funlockfile(stdout);
    return unused;
}
static void locked_stream(void) { pair(prints_as_one, prints_as_one); }

static void *reads_clocks(void *unused) {
    clockid_t clock;
    CHECK(pthread_getcpuclockid(pthread_self(), &clock) == 0);
    struct timespec a, b;
    CHECK(clock_gettime(clock, &a) == 0 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b) == 0);
    CHECK(clock_gettime(clock, &b) == 0);
    CHECK(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec > a.tv_nsec));
    return unused;
}
static void processor_clocks(void) { pair(reads_clocks, reads_clocks); }

static struct timespec when;
static void *waits_for_time(void *unused) {
    struct timespec now;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < when.tv_sec);
    return unused;
}
static void clock_loop(void) {
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += 1;
    // Only the sleeper moves time far enough: the loop has to let it run.
    pthread_t loops;
    pthread_create(&loops, 0, waits_for_time, 0);
    sleep(2);
    pthread_join(loops, 0);
}

static void *where_am_i(void *unused) {
    some_steps(2);
    CHECK(sched_getcpu() >= 0);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1);
    CHECK(CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN) || CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN));
    return unused;
}
static void processors(void) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    printf("%d\n", CPU_COUNT(&set));
    pair(where_am_i, where_am_i);
}

static void *random_bytes(void *unused) {
    unsigned value = 0;
    CHECK(syscall(SYS_getrandom, &value, sizeof value, 0) == sizeof value);
    printf("%08x\n", value);
    return unused;
}
static void randomness(void) { pair(random_bytes, random_bytes); }

static atomic_int flag;
static void *spins(void *unused) {
    while (!flag);
    return unused;
}
static void *sets_flag(void *unused) {
    flag = 1;
    return unused;
}
static void spinning(void) { pair(spins, sets_flag); }

/* Calls that wait, made without libc's functions for them. */
static int bell;
static long rings;
static void *rings_bell(void *unused) {
    unsigned long one = 1;
    struct timespec hour = {3600, 0};
    struct pollfd input = {ends[0], POLLIN, 0};
    char byte;
    CHECK(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &hour, 0) == 0);
    CHECK(syscall(SYS_write, bell, &one, sizeof one) == sizeof one);
    CHECK(syscall(SYS_ppoll, &input, 1, 0, 0, 8) == 1);
    CHECK(syscall(SYS_read, ends[0], &byte, 1) == 1 && byte == 'x');
    return unused;
}
static void *hears_bell(void *unused) {
    struct epoll_event event = {EPOLLIN, {0}};
    struct timespec hour = {3600, 0};
    int set = epoll_create1(0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, bell, &event) == 0);
    CHECK(syscall(SYS_epoll_pwait, set, &event, 1, -1, 0, 8) == 1);
    CHECK(syscall(SYS_read, bell, &rings, sizeof(long)) == sizeof(long));
    CHECK(syscall(SYS_epoll_pwait2, set, &event, 1, &hour, 0, 8) == 0);
    CHECK(syscall(SYS_write, ends[1], "x", 1) == 1);
    CHECK(syscall(SYS_read, -1, &event, 1) == -1 && errno == EBADF);
    close(set);
    return unused;
}
static void direct_calls(void) {
    bell = eventfd(0, 0);
    CHECK(pipe(ends) == 0);
    pair(rings_bell, hears_bell);
}

/* A queue of one message between two threads. */
static mqd_t queue;
static void *sends_messages(void *unused) {
    for (char i = 0; i < 3; i++) CHECK(mq_send(queue, &i, 1, 0) == 0);
    return unused;
}
static void *receives_messages(void *unused) {
    char message[16];
    for (char i = 0; i < 3; i++) CHECK(mq_receive(queue, message, sizeof message, 0) == 1 && message[0] == i);
    return unused;
}
static void message_queue(void) {
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 16};
    char name[40];
    snprintf(name, sizeof name, "/waylay-hazard-%d", getpid());
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &one);
    CHECK(queue >= 0);
    mq_unlink(name);
    pair(sends_messages, receives_messages);
}

/* A small loop that computes for a hundred milliseconds waits for nobody. */
static unsigned long sums[512];
static void *works_long(void *unused) {
    struct timespec begun, now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &begun);
    for (int i = 0; i < 3; i++) {
        do {
            for (unsigned long k = 0; k < 3000000; k++) sums[k % 512] += k;
            syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
        } while ((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec < (i + 1) * 100000000);
        pthread_mutex_lock(&guard);
        pthread_mutex_unlock(&guard);
    }
    return unused;
}
static void computing(void) { pair(works_long, works_long); }

/* Nothing but the program's own signals ends a wait for signals, whatever else goes on in the process meanwhile. */
static volatile sig_atomic_t called;
static void on_call(int number) { called = number; }
static void *computes_and_calls(void *unused) {
    struct timespec now;
    /* Ticks that count processor time come every few milliseconds: some tens of them. */
    volatile unsigned long sum = 1;
    do {
        for (int i = 0; i < 1000000; i++) sum = sum * 31 + i;
        syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec == 0 && now.tv_nsec < 100000000);
    kill(getpid(), SIGUSR2);
    return unused;
}
static void wait_for_call(void (*wait)(sigset_t *)) {
    struct sigaction action = {.sa_handler = on_call};
    CHECK(sigaction(SIGUSR2, &action, 0) == 0);
    sigset_t calls, before;
    sigemptyset(&calls);
    sigaddset(&calls, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &calls, &before) == 0);
    pthread_t thread;
    pthread_create(&thread, 0, computes_and_calls, 0);
    wait(&calls);
    CHECK(pthread_join(thread, 0) == 0);
}
static void suspends(sigset_t *unused) {
    sigset_t none;
    sigemptyset(&none);
    CHECK(sigsuspend(&none) == -1 && errno == EINTR);
    CHECK(called == SIGUSR2);
    (void)unused;
}
static void waits_for_information(sigset_t *calls) {
    siginfo_t information;
    CHECK(sigwaitinfo(calls, &information) == SIGUSR2);
}
static void waits_for_some_time(sigset_t *calls) {
    /* The time is virtual: the schedule decides whether it is over before the call. */
    struct timespec seconds = {10, 0};
    int taken;
    while ((taken = sigtimedwait(calls, 0, &seconds)) < 0) CHECK(errno == EAGAIN);
    CHECK(taken == SIGUSR2);
}
/* Two threads wait for different signals, and each gets its own. */
static void wait_for(int wanted) {
    sigset_t calls;
    int number;
    sigemptyset(&calls);
    sigaddset(&calls, wanted);
    CHECK(sigwait(&calls, &number) == 0 && number == wanted);
}
static void *answers(void *unused) {
    wait_for(SIGUSR2);
    kill(getpid(), SIGUSR1);
    return unused;
}
static void calls_of_two(void) {
    struct sigaction action = {.sa_handler = on_call};
    CHECK(sigaction(SIGUSR1, &action, 0) == 0 && sigaction(SIGUSR2, &action, 0) == 0);
    sigset_t calls;
    sigemptyset(&calls);
    sigaddset(&calls, SIGUSR1);
    sigaddset(&calls, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &calls, 0) == 0);
    pthread_t other, caller;
    pthread_create(&other, 0, answers, 0);
    pthread_create(&caller, 0, computes_and_calls, 0);
    wait_for(SIGUSR1);
    CHECK(pthread_join(other, 0) == 0 && pthread_join(caller, 0) == 0);
}
static void call_while_suspended(void) { wait_for_call(suspends); }
static void call_with_information(void) { wait_for_call(waits_for_information); }
static void call_in_time(void) { wait_for_call(waits_for_some_time); }

static void *exits_process(void *unused) {
    sched_yield();
    exit(7);
    return unused;
}
static void *runs_for_ever(void *unused) {
    for (;;) sched_yield();
    return unused;
}
static void at_exit(void) { puts("exit handler"); }
static void exit_from_thread(void) {
    atexit(at_exit);
    pair(exits_process, runs_for_ever);
}

static void main_returns(void) {
    atexit(at_exit);
    pthread_t thread;
    pthread_create(&thread, 0, runs_for_ever, 0);
    sched_yield();
}

static void *says_done(void *unused) {
    some_steps(3);
    puts("done");
    return unused;
}
static void main_leaves(void) {
    pthread_t thread;
    pthread_create(&thread, 0, says_done, 0);
    pthread_exit(0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*test)(void);
    } tests[] = {
        {"pipe", pipe_between_threads}, {"full_pipe", full_pipe}, {"polling", polling},
        {"event_descriptor", event_descriptor}, {"from_outside", from_outside}, {"child_with_pipe", child_with_pipe},
        {"fault_handler", fault_handler},
        {"kill_thread", kill_thread}, {"handler_posts", handler_posts}, {"signal_masks", signal_masks},
        {"alternate_stacks", alternate_stacks}, {"cancellation", cancellation}, {"forking", forking},
        {"shell", shell}, {"credentials", credentials}, {"locked_stream", locked_stream},
        {"processor_clocks", processor_clocks}, {"clock_loop", clock_loop}, {"processors", processors},
        {"randomness", randomness}, {"spinning", spinning}, {"exit_from_thread", exit_from_thread},
        {"main_returns", main_returns}, {"main_leaves", main_leaves},
        {"cancelled_before_waiting", cancelled_before_waiting}, {"leaving_from_within", leaving_from_within},
        {"leaving_unnoticed", leaving_unnoticed}, {"main_is_joined", main_is_joined},
        {"call_while_suspended", call_while_suspended}, {"call_with_information", call_with_information},
        {"call_in_time", call_in_time}, {"calls_of_two", calls_of_two},
        {"computing", computing}, {"direct_calls", direct_calls}, {"message_queue", message_queue},
    };
    setvbuf(stdout, 0, _IONBF, 0);
    for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++)
        if (argc > 1 && !strcmp(argv[1], tests[i].name)) {
            tests[i].test();
            return 0;
        }
    return 2;
}
