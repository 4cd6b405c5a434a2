// Signals: sending, blocking, waiting for them and handling them.
#include "case.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static atomic_int done, value_seen, code_seen;
static void on_information(int number, siginfo_t *information, void *unused) {
    value_seen = information->si_value.sival_int;
    code_seen = information->si_code;
    handled++;
    last_signal = number;
}
static void handle_information(int number) {
    struct sigaction action = {.sa_sigaction = on_information, .sa_flags = SA_SIGINFO};
    IS(sigaction(number, &action, 0), 0);
    handled = value_seen = code_seen = last_signal = 0;
}
static bool is_pending(int number) {
    sigset_t set;
    IS(sigpending(&set), 0);
    return sigismember(&set, number);
}

#define SENT(name, functions, call, code)                                   \
    CASE(name##_is_handled_at_once, functions) {                            \
        handle_information(SIGUSR1);                                        \
        IS(call, 0);                                                        \
        IS(handled, 1);                                                     \
        IS(code_seen, code);                                                \
    }                                                                       \
    CASE(name##_waits_while_blocked, functions " sigpending pthread_sigmask") { \
        handle_information(SIGUSR1);                                        \
        block(SIG_BLOCK, SIGUSR1);                                          \
        HOLDS(!is_pending(SIGUSR1));                                        \
        IS(call, 0);                                                        \
        IS(call, 0);                                                        \
        IS(handled, 0);                                                     \
        HOLDS(is_pending(SIGUSR1));                                         \
        block(SIG_UNBLOCK, SIGUSR1);                                        \
        IS(handled, 1);                                                     \
        HOLDS(!is_pending(SIGUSR1));                                        \
    }                                                                       \
    CASE(name##_can_be_ignored, functions) {                                \
        signal(SIGUSR1, SIG_IGN);                                           \
        IS(call, 0);                                                        \
        HOLDS(!is_pending(SIGUSR1));                                        \
    }                                                                       \
    CASE(name##_is_taken_by_a_wait, functions " sigwait") {                 \
        int number = 0;                                                     \
        sigset_t set = set_of(SIGUSR1);                                     \
        handle_information(SIGUSR1);                                        \
        block(SIG_BLOCK, SIGUSR1);                                          \
        IS(call, 0);                                                        \
        IS(sigwait(&set, &number), 0);                                      \
        IS(number, SIGUSR1);                                                \
        block(SIG_UNBLOCK, SIGUSR1);                                        \
        IS(handled, 0);                                                     \
    }
static int queues(void) {
    union sigval value = {.sival_int = 42};
    return sigqueue(getpid(), SIGUSR1, value);
}
static int queues_for_thread(void) {
    union sigval value = {.sival_int = 42};
    return pthread_sigqueue(pthread_self(), SIGUSR1, value);
}
SENT(kill, "kill", kill(getpid(), SIGUSR1), SI_USER)
SENT(raise, "raise", raise(SIGUSR1), SI_TKILL)
SENT(pthread_kill, "pthread_kill", pthread_kill(pthread_self(), SIGUSR1), SI_TKILL)
SENT(sigqueue, "sigqueue", queues(), SI_QUEUE)
SENT(pthread_sigqueue, "pthread_sigqueue", queues_for_thread(), SI_QUEUE)
SENT(tgkill, "tgkill gettid", tgkill(getpid(), gettid(), SIGUSR1), SI_TKILL)
SENT(direct_tgkill, "syscall", syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1), SI_TKILL)

CASE(signals_that_do_not_exist, "kill raise pthread_kill sigqueue pthread_sigqueue tgkill sigaction") {
    union sigval value = {0};
    struct sigaction action = {.sa_handler = on_signal};
    FAILS(kill(getpid(), 99), EINVAL);
    FAILS(raise(99), EINVAL);
    IS(pthread_kill(pthread_self(), 99), EINVAL);
    FAILS(sigqueue(getpid(), 99, value), EINVAL);
    IS(pthread_sigqueue(pthread_self(), 99, value), EINVAL);
    FAILS(tgkill(getpid(), gettid(), 99), EINVAL);
    FAILS(sigaction(99, &action, 0), EINVAL);
    FAILS(sigaction(SIGKILL, &action, 0), EINVAL);
    FAILS(sigaction(SIGSTOP, &action, 0), EINVAL);
}
CASE(asking_whether_somebody_is_there, "kill pthread_kill tgkill killpg") {
    IS(kill(getpid(), 0), 0);
    IS(pthread_kill(pthread_self(), 0), 0);
    IS(tgkill(getpid(), gettid(), 0), 0);
    FAILS(kill(0x3fffffff, 0), ESRCH);
    FAILS(tgkill(getpid(), 0x3fffffff, 0), ESRCH);
    FAILS(killpg(0x3fffffff, 0), ESRCH);
    FAILS(killpg(-1, 0), EINVAL);
}
CASE(values_come_along, "sigqueue pthread_sigqueue") {
    handle_information(SIGUSR1);
    IS(queues(), 0);
    IS(value_seen, 42);
    value_seen = 0;
    IS(queues_for_thread(), 0);
    IS(value_seen, 42);
}
CASE(real_time_signals_are_queued, "sigqueue sigwaitinfo") {
    handle_information(SIGRTMIN + 1);
    block(SIG_BLOCK, SIGRTMIN + 1);
    for (int i = 1; i <= 3; i++) IS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}), 0);
    sigset_t set = set_of(SIGRTMIN + 1);
    siginfo_t information;
    for (int i = 1; i <= 3; i++) {
        IS(sigwaitinfo(&set, &information), SIGRTMIN + 1);
        IS(information.si_value.sival_int, i);
        IS(information.si_code, SI_QUEUE);
    }
    struct timespec none = {0, 0};
    FAILS(sigtimedwait(&set, 0, &none), EAGAIN);
    block(SIG_UNBLOCK, SIGRTMIN + 1);
    IS(handled, 0);
}
CASE(queued_signals_are_all_handled, "sigqueue pthread_sigmask") {
    handle_information(SIGRTMIN + 1);
    block(SIG_BLOCK, SIGRTMIN + 1);
    for (int i = 1; i <= 3; i++) IS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}), 0);
    block(SIG_UNBLOCK, SIGRTMIN + 1);
    IS(handled, 3);
    IS(value_seen, 3);
}
static void *takes_three(void *unused) {
    sigset_t set = set_of(SIGRTMIN + 1);
    siginfo_t information;
    for (int i = 1; i <= 3; i++) {
        IS(sigwaitinfo(&set, &information), SIGRTMIN + 1);
        IS(information.si_value.sival_int, i);
    }
    return unused;
}
CASE(queued_signals_reach_a_waiting_thread, "pthread_sigqueue sigwaitinfo") {
    block(SIG_BLOCK, SIGRTMIN + 1);
    pthread_t thread = start(takes_three, 0);
    for (int i = 1; i <= 3; i++) IS(pthread_sigqueue(thread, SIGRTMIN + 1, (union sigval){.sival_int = i}), 0);
    joined(thread);
    block(SIG_UNBLOCK, SIGRTMIN + 1);
}

static int depth, deepest;
static void nests(int number) {
    if (++depth > deepest) deepest = depth;
    if (handled++ < 2) raise(number);
    depth--;
}
CASE(handlers_do_not_interrupt_themselves, "sigaction raise") {
    struct sigaction action = {.sa_handler = nests};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    handled = depth = deepest = 0;
    raise(SIGUSR1);
    IS(handled, 3);
    IS(deepest, 1);
}
CASE(handlers_interrupt_themselves_when_asked, "sigaction raise") {
    struct sigaction action = {.sa_handler = nests, .sa_flags = SA_NODEFER};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    handled = depth = deepest = 0;
    raise(SIGUSR1);
    IS(handled, 3);
    IS(deepest, 3);
}
CASE(handlers_can_be_for_one_time, "sigaction raise") {
    struct sigaction action, once = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    IS(sigaction(SIGUSR1, &once, 0), 0);
    handled = 0;
    raise(SIGUSR1);
    IS(handled, 1);
    IS(sigaction(SIGUSR1, 0, &action), 0);
    HOLDS(action.sa_handler == SIG_DFL);
}
static void looks_at_mask(int unused) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, 0, &now);
    HOLDS(sigismember(&now, SIGUSR1));
    HOLDS(sigismember(&now, SIGUSR2));
    raise(SIGUSR2);
    IS(last_signal, 0);
}
CASE(handlers_have_a_mask, "sigaction raise pthread_sigmask") {
    handle(SIGUSR2, 0);
    struct sigaction action = {.sa_handler = looks_at_mask, .sa_mask = set_of(SIGUSR2)};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    raise(SIGUSR1);
    IS(last_signal, SIGUSR2);
}
static char stack[65536];
static atomic_int on_stack;
static void looks_at_stack(int unused) {
    char here;
    on_stack = &here >= stack && &here < stack + sizeof stack;
}
static void *has_a_stack(void *unused) {
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, old;
    IS(sigaltstack(&alternate, 0), 0);
    IS(sigaltstack(0, &old), 0);
    HOLDS(old.ss_sp == stack);
    stack_t small = {.ss_sp = stack, .ss_size = 1};
    FAILS(sigaltstack(&small, 0), ENOMEM);
    raise(SIGUSR1);
    IS(on_stack, 1);
    alternate.ss_flags = SS_DISABLE;
    IS(sigaltstack(&alternate, 0), 0);
    return unused;
}
CASE(handlers_have_a_stack, "sigaltstack sigaction") {
    struct sigaction action = {.sa_handler = looks_at_stack, .sa_flags = SA_ONSTACK};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    joined(start(has_a_stack, 0));
}

CASE(masks_change, "pthread_sigmask sigprocmask") {
    sigset_t two = set_of(SIGUSR1), old;
    sigaddset(&two, SIGUSR2);
    IS(pthread_sigmask(SIG_SETMASK, &two, &old), 0);
    HOLDS(!sigismember(&old, SIGUSR1));
    sigset_t one = set_of(SIGUSR1);
    IS(sigprocmask(SIG_UNBLOCK, &one, &old), 0);
    HOLDS(sigismember(&old, SIGUSR1) && sigismember(&old, SIGUSR2));
    IS(sigprocmask(SIG_BLOCK, 0, &old), 0);
    HOLDS(!sigismember(&old, SIGUSR1) && sigismember(&old, SIGUSR2));
    sigset_t none = set_of(0);
    IS(sigprocmask(SIG_SETMASK, &none, 0), 0);
    IS(pthread_sigmask(99, &none, 0), EINVAL);
    FAILS(sigprocmask(99, &none, 0), EINVAL);
}
CASE(all_signals_can_be_blocked, "pthread_sigmask") {
    sigset_t all, now, before;
    sigfillset(&all);
    IS(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    IS(pthread_sigmask(SIG_BLOCK, 0, &now), 0);
    HOLDS(sigismember(&now, SIGTRAP) && sigismember(&now, SIGSEGV) && !sigismember(&now, SIGKILL));
    IS(pthread_sigmask(SIG_SETMASK, &before, &now), 0);
    HOLDS(sigismember(&now, SIGTRAP));
}
static void *looks_at_inherited_mask(void *unused) {
    sigset_t now;
    IS(pthread_sigmask(SIG_BLOCK, 0, &now), 0);
    HOLDS(sigismember(&now, SIGUSR2));
    block(SIG_UNBLOCK, SIGUSR2);
    return unused;
}
CASE(masks_are_inherited_and_the_threads_own, "pthread_sigmask pthread_create") {
    block(SIG_BLOCK, SIGUSR2);
    joined(start(looks_at_inherited_mask, 0));
    looks_at_inherited_mask(0);
}
CASE(old_masks, "sighold sigrelse sigset") {
    handle(SIGUSR1, 0);
    IS(sighold(SIGUSR1), 0);
    raise(SIGUSR1);
    IS(handled, 0);
    IS(sigrelse(SIGUSR1), 0);
    IS(handled, 1);
    HOLDS(sigset(SIGUSR1, SIG_HOLD) == on_signal);
    raise(SIGUSR1);
    IS(handled, 1);
    HOLDS(sigset(SIGUSR1, on_signal) == SIG_HOLD);
    IS(handled, 2);
    FAILS(sighold(99), EINVAL);
    FAILS(sigrelse(99), EINVAL);
    HOLDS(sigset(99, on_signal) == SIG_ERR);
}

// What a thread waits in until a handler has run; its signal comes as often as it takes.
static int suspends(void) {
    sigset_t none = set_of(0);
    return sigsuspend(&none);
}
int pauses_with_mask(int) __asm__("sigpause");
static int pauses_in_the_old_way(void) { return pauses_with_mask(0); }
int pauses_for(int) __asm__("__xpg_sigpause");
static int pauses_for_one(void) { return pauses_for(SIGUSR1); }
static void *waits_for_handler(void *call) {
    block(SIG_BLOCK, SIGUSR1);
    if (call == pause) block(SIG_UNBLOCK, SIGUSR1);
    FAILS(((int (*)(void))call)(), EINTR);
    done = 1;
    sigset_t now;
    IS(pthread_sigmask(SIG_BLOCK, 0, &now), 0);
    IS(sigismember(&now, SIGUSR1), call != pause);
    return 0;
}
#define SUSPENDED(name, functions, call)                                 \
    CASE(name##_ends_with_a_handler, functions) {                        \
        handle(SIGUSR1, 0);                                              \
        done = 0;                                                        \
        pthread_t thread = start(waits_for_handler, call);               \
        poke(thread, SIGUSR1, &done);                                    \
        joined(thread);                                                  \
        HOLDS(handled >= 1);                                             \
    }                                                                    \
    CASE(name##_is_not_restarted, functions) {                           \
        handle(SIGUSR1, SA_RESTART);                                     \
        done = 0;                                                        \
        pthread_t thread = start(waits_for_handler, call);               \
        poke(thread, SIGUSR1, &done);                                    \
        joined(thread);                                                  \
    }                                                                    \
    CASE(name##_is_a_cancellation_point, functions " pthread_cancel") {  \
        handle(SIGUSR1, SA_RESTART);                                     \
        pthread_t thread = start(waits_for_handler, call);               \
        usleep(500);                                                     \
        IS(pthread_cancel(thread), 0);                                   \
        HOLDS(joined(thread) == PTHREAD_CANCELED);                       \
    }
SUSPENDED(pause, "pause", pause)
SUSPENDED(sigsuspend, "sigsuspend", suspends)
SUSPENDED(sigpause, "sigpause", pauses_in_the_old_way)
SUSPENDED(sigpause_for_one, "__xpg_sigpause", pauses_for_one)
CASE(suspending_takes_what_is_pending, "sigsuspend sigpause __xpg_sigpause") {
    handle(SIGUSR1, 0);
    block(SIG_BLOCK, SIGUSR1);
    for (int i = 0; i < 2; i++) {
        raise(SIGUSR1);
        FAILS(suspends(), EINTR);
        pthread_kill(pthread_self(), SIGUSR1);
        FAILS(pauses_in_the_old_way(), EINTR);
        kill(getpid(), SIGUSR1);
        FAILS(pauses_for_one(), EINTR);
    }
    IS(handled, 6);
    block(SIG_UNBLOCK, SIGUSR1);
}

static void *takes(void *unused) {
    sigset_t set = set_of(SIGUSR1);
    sigaddset(&set, SIGUSR2);
    int number = 0;
    IS(sigwait(&set, &number), 0);
    done = number;
    return unused;
}
#define TAKEN(name, functions, send)                                      \
    CASE(waiting_thread_takes_##name, functions " sigwait") {             \
        block(SIG_BLOCK, SIGUSR2);                                        \
        done = 0;                                                         \
        pthread_t thread = start(takes, 0);                               \
        usleep(500);                                                      \
        IS(send, 0);                                                      \
        joined(thread);                                                   \
        IS(done, SIGUSR2);                                                \
        block(SIG_UNBLOCK, SIGUSR2);                                      \
    }
TAKEN(what_is_sent_to_it, "pthread_kill", pthread_kill(thread, SIGUSR2))
TAKEN(what_is_sent_to_the_process, "kill", kill(getpid(), SIGUSR2))
TAKEN(what_is_queued_for_it, "pthread_sigqueue", pthread_sigqueue(thread, SIGUSR2, (union sigval){0}))
TAKEN(what_is_queued_for_the_process, "sigqueue", sigqueue(getpid(), SIGUSR2, (union sigval){0}))

static void *takes_with_information(void *unused) {
    sigset_t set = set_of(SIGUSR2);
    siginfo_t information;
    errno = 0;
    int taken = sigwaitinfo(&set, &information);
    done = taken < 0 ? -errno : taken;
    return unused;
}
CASE(waiting_for_one_is_interrupted_by_another, "sigwaitinfo sigtimedwait") {
    handle(SIGUSR1, SA_RESTART);
    block(SIG_BLOCK, SIGUSR2);
    done = 0;
    pthread_t thread = start(takes_with_information, 0);
    poke(thread, SIGUSR1, &done);
    joined(thread);
    IS(done, -EINTR);
    block(SIG_UNBLOCK, SIGUSR2);
}
CASE(sigwait_goes_on_behind_handlers, "sigwait") {
    handle(SIGHUP, 0);
    block(SIG_BLOCK, SIGUSR2);
    done = 0;
    pthread_t thread = start(takes, 0);
    poke_times(thread, SIGHUP, 2);
    IS(done, 0);
    IS(pthread_kill(thread, SIGUSR2), 0);
    joined(thread);
    IS(done, SIGUSR2);
    block(SIG_UNBLOCK, SIGUSR2);
}
CASE(waiting_has_an_end, "sigtimedwait") {
    block(SIG_BLOCK, SIGUSR2);
    sigset_t set = set_of(SIGUSR2);
    struct timespec soon = {0, 2000000}, none = {0, 0}, bad = {0, 2000000000}, negative = {-1, 0};
    FAILS(sigtimedwait(&set, 0, &soon), EAGAIN);
    FAILS(sigtimedwait(&set, 0, &none), EAGAIN);
    FAILS(sigtimedwait(&set, 0, &bad), EINVAL);
    FAILS(sigtimedwait(&set, 0, &negative), EINVAL);
    raise(SIGUSR2);
    siginfo_t information;
    IS(sigtimedwait(&set, &information, &none), SIGUSR2);
    IS(information.si_signo, SIGUSR2);
    raise(SIGUSR2);
    IS(sigtimedwait(&set, &information, 0), SIGUSR2);
    block(SIG_UNBLOCK, SIGUSR2);
}
static void *takes_for_ever(void *unused) {
    sigset_t set = set_of(SIGUSR2);
    int number;
    sigwait(&set, &number);
    return unused;
}
CASE(waiting_for_signals_is_a_cancellation_point, "sigwait pthread_cancel") {
    block(SIG_BLOCK, SIGUSR2);
    pthread_t thread = start(takes_for_ever, 0);
    usleep(500);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    block(SIG_UNBLOCK, SIGUSR2);
}

static pthread_t receiver;
static atomic_int received_by_it;
static void notes_thread(int unused) {
    received_by_it = pthread_equal(pthread_self(), receiver);
    handled++;
}
static void *receives(void *unused) {
    while (!handled) sched_yield();
    return unused;
}
CASE(signals_go_to_who_lets_them_through, "kill pthread_sigmask") {
    struct sigaction action = {.sa_handler = notes_thread};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    handled = received_by_it = 0;
    receiver = start(receives, 0);
    block(SIG_BLOCK, SIGUSR1);
    // Whoever is started inherits the mask or has none of its own yet.
    IS(pthread_kill(receiver, 0), 0);
    IS(kill(getpid(), SIGUSR1), 0);
    joined(receiver);
    IS(received_by_it, 1);
    block(SIG_UNBLOCK, SIGUSR1);
}
CASE(signals_to_a_thread_stay_with_it, "pthread_kill") {
    struct sigaction action = {.sa_handler = notes_thread};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    handled = received_by_it = 0;
    receiver = start(receives, 0);
    IS(pthread_kill(receiver, SIGUSR1), 0);
    joined(receiver);
    IS(received_by_it, 1);
}
static void *ends_with_pending(void *unused) {
    block(SIG_BLOCK, SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);
    return unused;
}
CASE(signals_to_a_thread_end_with_it, "pthread_kill") {
    handle(SIGUSR1, 0);
    joined(start(ends_with_pending, 0));
    IS(handled, 0);
}
CASE(signals_to_who_has_ended_are_lost, "pthread_kill") {
    handle(SIGUSR1, 0);
    pthread_t thread = start(does_nothing, 0);
    while (pthread_tryjoin_np(thread, 0) == EBUSY) {
        IS(pthread_kill(thread, 0), 0);
        usleep(100);
    }
}
static sem_t asked, answered;
static void waits_in_handler(int unused) {
    sem_post(&asked);
    while (sem_wait(&answered) != 0) IS(errno, EINTR);
    handled++;
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *waits_for_mutex(void *unused) {
    IS(pthread_mutex_lock(&mutex), 0);
    IS(pthread_mutex_unlock(&mutex), 0);
    return unused;
}
CASE(handlers_may_wait_inside_a_wait, "pthread_kill pthread_mutex_lock sem_wait") {
    sem_init(&asked, 0, 0), sem_init(&answered, 0, 0);
    struct sigaction action = {.sa_handler = waits_in_handler};
    IS(sigaction(SIGUSR1, &action, 0), 0);
    handled = 0;
    pthread_mutex_lock(&mutex);
    pthread_t thread = start(waits_for_mutex, 0);
    IS(pthread_kill(thread, SIGUSR1), 0);
    IS(sem_wait(&asked), 0);
    pthread_mutex_unlock(&mutex);
    IS(handled, 0);
    sem_post(&answered);
    joined(thread);
    IS(handled, 1);
}

ONLY(fatal_signal_ends_the_process, "raise") { raise(SIGTERM); }
ONLY(fatal_signal_for_a_thread_ends_the_process, "pthread_kill") {
    pthread_kill(start(takes_for_ever, 0), SIGTERM);
    for (;;) pause();
}

static atomic_int sum, begun;
static void *takes_five(void *argument) {
    sigset_t set = set_of(SIGRTMIN + 2);
    for (int i = 0; i < 5; i++) {
        siginfo_t information;
        begun++;
        int taken;
        // The kernel wakes one, and another may have taken it.
        do taken = sigwaitinfo(&set, &information);
        while (taken == -1 && errno == EINTR);
        IS(taken, SIGRTMIN + 2);
        sum += information.si_value.sival_int;
    }
    return argument;
}
// Signals for the process are nobody's until somebody takes them: whoever has enough leaves the rest to others.
CASE(queued_signals_are_shared_by_those_who_wait, "sigqueue sigwaitinfo") {
    block(SIG_BLOCK, SIGRTMIN + 2);
    sum = begun = 0;
    pthread_t one = start(takes_five, 0), other = start(takes_five, 0);
    while (!begun) sched_yield();
    for (int i = 0; i < 10; i++) {
        union sigval value = {.sival_int = i};
        IS(sigqueue(getpid(), SIGRTMIN + 2, value), 0);
    }
    joined(one);
    joined(other);
    IS(sum, 45);
    block(SIG_UNBLOCK, SIGRTMIN + 2);
}

static void *ends_with_a_signal(void *argument) {
    block(SIG_UNBLOCK, SIGUSR2);
    return argument;
}
// One that nobody took when its thread ended is still there.
CASE(a_signal_of_the_process_outlives_threads, "kill sigwait pthread_sigmask") {
    handle(SIGUSR2, 0);
    block(SIG_BLOCK, SIGUSR2);
    pthread_t thread = start(ends_with_a_signal, 0);
    IS(kill(getpid(), SIGUSR2), 0);
    joined(thread);
    struct timespec no_time = {0, 0};
    sigset_t set = set_of(SIGUSR2);
    HOLDS(handled == 1 || sigtimedwait(&set, 0, &no_time) == SIGUSR2);
    block(SIG_UNBLOCK, SIGUSR2);
}

static int reader;
static void *reads_a_signal(void *unused) {
    struct signalfd_siginfo information;
    IS(read(reader, &information, sizeof information), sizeof information);
    IS(information.ssi_signo, SIGUSR1);
    return unused;
}
CASE(a_signal_to_the_process_is_read, "signalfd kill read") {
    block(SIG_BLOCK, SIGUSR1);
    sigset_t set = set_of(SIGUSR1);
    reader = signalfd(-1, &set, 0);
    pthread_t thread = start(reads_a_signal, 0);
    IS(kill(getpid(), SIGUSR1), 0);
    joined(thread);
    sigset_t left;
    IS(sigpending(&left), 0);
    IS(sigismember(&left, SIGUSR1), 0);
    close(reader);
    block(SIG_UNBLOCK, SIGUSR1);
}
CASE(a_signal_to_the_thread_is_read, "signalfd pthread_kill read") {
    block(SIG_BLOCK, SIGUSR1);
    sigset_t set = set_of(SIGUSR1);
    reader = signalfd(-1, &set, 0);
    pthread_t thread = start(reads_a_signal, 0);
    IS(pthread_kill(thread, SIGUSR1), 0);
    joined(thread);
    close(reader);
    block(SIG_UNBLOCK, SIGUSR1);
}
CASE(a_signal_from_before_is_read, "signalfd raise poll") {
    block(SIG_BLOCK, SIGUSR1);
    IS(kill(getpid(), SIGUSR1), 0);
    sigset_t set = set_of(SIGUSR1);
    reader = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    struct pollfd look = {reader, POLLIN, 0};
    IS(poll(&look, 1, 0), 1);
    reads_a_signal(0);
    IS(poll(&look, 1, 0), 0);
    struct signalfd_siginfo information;
    FAILS(read(reader, &information, sizeof information), EAGAIN);
    IS(raise(SIGUSR1), 0);
    reads_a_signal(0);
    close(reader);
    block(SIG_UNBLOCK, SIGUSR1);
}
static void *sends_with_values(void *unused) {
    for (int i = 1; i <= 3; i++) IS(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = i}), 0);
    return unused;
}
CASE(queued_signals_are_read_in_order_through_epoll, "signalfd sigqueue epoll_wait") {
    block(SIG_BLOCK, SIGRTMIN + 2);
    sigset_t set = set_of(SIGRTMIN + 2);
    reader = syscall(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK);
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    IS(epoll_ctl(poller, EPOLL_CTL_ADD, reader, &event), 0);
    pthread_t thread = start(sends_with_values, 0);
    for (int seen = 0; seen < 3;) {
        IS(epoll_wait(poller, &event, 1, -1), 1);
        struct signalfd_siginfo information;
        while (read(reader, &information, sizeof information) == sizeof information) {
            IS(information.ssi_int, ++seen);
            IS(information.ssi_code, SI_QUEUE);
        }
    }
    joined(thread);
    close(poller);
    close(reader);
    block(SIG_UNBLOCK, SIGRTMIN + 2);
}
CASE(the_end_of_a_child_is_read, "signalfd fork waitpid") {
    block(SIG_BLOCK, SIGCHLD);
    sigset_t set = set_of(SIGCHLD);
    reader = signalfd(-1, &set, 0);
    pid_t child = fork();
    if (child == 0) _exit(3);
    struct signalfd_siginfo information;
    IS(read(reader, &information, sizeof information), sizeof information);
    IS(information.ssi_signo, SIGCHLD);
    IS(information.ssi_pid, child);
    int status;
    IS(waitpid(child, &status, 0), child);
    IS(WEXITSTATUS(status), 3);
    close(reader);
    block(SIG_UNBLOCK, SIGCHLD);
}
CASE(signalfd_refuses, "signalfd") {
    sigset_t set = set_of(SIGUSR1);
    FAILS(signalfd(0, &set, 0), EINVAL);
    FAILS(signalfd(-1, &set, 1), EINVAL);
    FAILS(signalfd(9999, &set, 0), EBADF);
}
