// Semaphores, the futex behind them, and System V's semaphores and queues.
#include "case.h"
#include <linux/futex.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

static sem_t semaphore;
static atomic_int done;
static int value(void) {
    int value = -1;
    IS(sem_getvalue(&semaphore, &value), 0);
    return value;
}

typedef struct {
    int (*call)(void);
    int result, error;
} Waiter;
static void *calls(void *argument) {
    Waiter *waiter = argument;
    errno = 0;
    waiter->result = waiter->call();
    waiter->error = errno;
    done = 1;
    return 0;
}
// The call is interrupted until it returns.
static Waiter interrupted(int (*call)(void), int flags) {
    Waiter waiter = {call, 0, 0};
    handle(SIGUSR1, flags);
    done = 0;
    pthread_t thread = start(calls, &waiter);
    poke(thread, SIGUSR1, &done);
    joined(thread);
    return waiter;
}
// The call goes on behind some handlers until something ends it.
static Waiter restarted(int (*call)(void), void (*end)(void)) {
    Waiter waiter = {call, 0, 0};
    handle(SIGUSR1, SA_RESTART);
    done = 0;
    pthread_t thread = start(calls, &waiter);
    poke_times(thread, SIGUSR1, 3);
    end();
    joined(thread);
    return waiter;
}
static void posts(void) { IS(sem_post(&semaphore), 0); }
static int waits(void) { return sem_wait(&semaphore); }
static int waits_long(void) {
    struct timespec later = in_ms(CLOCK_REALTIME, 100000);
    return sem_timedwait(&semaphore, &later);
}
static int waits_long_by_clock(void) {
    struct timespec later = in_ms(CLOCK_MONOTONIC, 100000);
    return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &later);
}
// Idle timeouts aside, the schedule may let hours pass: then the wait is over, and not interrupted.
#define INTERRUPTED(waiter)                              \
    do {                                                 \
        Waiter w_ = waiter;                              \
        IS(w_.result, -1);                               \
        HOLDS(w_.error == EINTR || w_.error == ETIMEDOUT); \
    } while (0)

static void *waits_in_thread(void *unused) {
    IS(sem_wait(&semaphore), 0);
    return unused;
}
#define KIND(kind, shared)                                                           \
    CASE(kind##_counts, "sem_wait sem_post sem_trywait") {                           \
        IS(sem_init(&semaphore, shared, 2), 0);                                      \
        IS(sem_wait(&semaphore), 0);                                                 \
        IS(sem_trywait(&semaphore), 0);                                              \
        IS(value(), 0);                                                              \
        FAILS(sem_trywait(&semaphore), EAGAIN);                                      \
        IS(sem_post(&semaphore), 0);                                                 \
        IS(value(), 1);                                                              \
        IS(sem_destroy(&semaphore), 0);                                              \
    }                                                                                \
    CASE(kind##_wakes, "sem_wait sem_post") {                                        \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        pthread_t one = start(waits_in_thread, 0), two = start(waits_in_thread, 0);  \
        posts(), posts();                                                            \
        joined(one), joined(two);                                                    \
        IS(value(), 0);                                                              \
    }                                                                                \
    CASE(kind##_times_out, "sem_timedwait sem_clockwait") {                          \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        struct timespec soon = in_ms(CLOCK_REALTIME, 2), past = in_ms(CLOCK_REALTIME, -5), before = BEFORE_ALL_TIME; \
        FAILS(sem_timedwait(&semaphore, &soon), ETIMEDOUT);                          \
        FAILS(sem_timedwait(&semaphore, &past), ETIMEDOUT);                          \
        FAILS(sem_timedwait(&semaphore, &before), ETIMEDOUT);                        \
        soon = in_ms(CLOCK_MONOTONIC, 2);                                            \
        FAILS(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &soon), ETIMEDOUT);         \
        posts();                                                                     \
        IS(sem_timedwait(&semaphore, &past), 0);                                     \
    }                                                                                \
    CASE(kind##_rejects_bad_times_and_clocks, "sem_timedwait sem_clockwait") {       \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        struct timespec bad = BAD_TIME, negative = {time(0) + 100, -1}, good = in_ms(CLOCK_REALTIME, 2); \
        FAILS(sem_timedwait(&semaphore, &bad), EINVAL);                              \
        FAILS(sem_timedwait(&semaphore, &negative), EINVAL);                         \
        FAILS(sem_clockwait(&semaphore, CLOCK_REALTIME, &bad), EINVAL);              \
        FAILS(sem_clockwait(&semaphore, CLOCK_BOOTTIME, &good), EINVAL);             \
        FAILS(sem_clockwait(&semaphore, 9999, &good), EINVAL);                       \
    }                                                                                \
    CASE(kind##_overflows, "sem_post") {                                             \
        IS(sem_init(&semaphore, shared, SEM_VALUE_MAX), 0);                          \
        FAILS(sem_post(&semaphore), EOVERFLOW);                                      \
        FAILS(sem_init(&semaphore, shared, SEM_VALUE_MAX + 1u), EINVAL);             \
    }                                                                                \
    CASE(kind##_wait_is_interrupted, "sem_wait pthread_kill") {                      \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        Waiter waiter = interrupted(waits, 0);                                       \
        IS(waiter.result, -1);                                                       \
        IS(waiter.error, EINTR);                                                     \
    }                                                                                \
    CASE(kind##_wait_is_restarted, "sem_wait pthread_kill") {                        \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        IS(restarted(waits, posts).result, 0);                                       \
        IS(value(), 0);                                                              \
    }                                                                                \
    CASE(kind##_timed_wait_is_interrupted, "sem_timedwait sem_clockwait") {          \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        INTERRUPTED(interrupted(waits_long, 0));                                     \
        INTERRUPTED(interrupted(waits_long, SA_RESTART));                            \
        INTERRUPTED(interrupted(waits_long_by_clock, 0));                            \
    }                                                                                \
    CASE(kind##_wait_is_a_cancellation_point, "sem_wait pthread_cancel") {           \
        IS(sem_init(&semaphore, shared, 0), 0);                                      \
        pthread_t thread = start(waits_in_thread, 0);                                \
        usleep(500);                                                                 \
        IS(pthread_cancel(thread), 0);                                               \
        HOLDS(joined(thread) == PTHREAD_CANCELED);                                   \
        IS(value(), 0);                                                              \
    }
KIND(semaphore_private, 0)
KIND(semaphore_shared, 1)

static void posts_in_handler(int unused) { sem_post(&semaphore); }
CASE(semaphore_is_posted_by_a_handler, "sem_post sem_wait pthread_kill") {
    IS(sem_init(&semaphore, 0, 0), 0);
    struct sigaction action = {.sa_handler = posts_in_handler, .sa_flags = SA_RESTART};
    IS(sigaction(SIGUSR2, &action, 0), 0);
    pthread_t thread = start(waits_in_thread, 0);
    IS(pthread_kill(thread, SIGUSR2), 0);
    joined(thread);
}

static atomic_int word;
static int waits_at_word(void) { return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0); }
static int waits_at_word_long(void) {
    struct timespec long_time = {100, 0};
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &long_time, 0, 0);
}
static void wakes_word(void) {
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
CASE(futex_looks_first, "syscall") {
    word = 1;
    FAILS(waits_at_word(), EAGAIN);
    struct timespec short_time = {0, 1000000}, bad = {0, 2000000000};
    word = 0;
    FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &short_time, 0, 0), ETIMEDOUT);
    FAILS(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &bad, 0, 0), EINVAL);
    IS(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0), 0);
}
// A wait for several words at once, which has no function.
struct waited { unsigned long value, address; unsigned flags, reserved; };
#define WAITED(at, wanted) {wanted, (unsigned long)(at), 2 | FUTEX_PRIVATE_FLAG, 0}
static int second_word;
static struct waited several[2] = {WAITED(&word, 0), WAITED(&second_word, 0)};
static int waits_at_several(void) { return syscall(449, several, 2, 0, 0, 0); }
static int waits_at_several_for_long(void) {
    struct timespec late = in_ms(CLOCK_MONOTONIC, 1000000);
    return syscall(449, several, 2, 0, &late, CLOCK_MONOTONIC);
}
static void wakes_second(void) {
    __atomic_store_n(&second_word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &second_word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void *waits_for_either(void *unused) {
    long woken = -1;
    // Before it waits the word may have changed already.
    while (!__atomic_load_n(&second_word, __ATOMIC_SEQ_CST)) woken = waits_at_several();
    HOLDS(woken == 1 || woken == -1);
    return unused;
}
CASE(several_futexes_are_looked_at_first, "syscall") {
    word = 0, second_word = 1;
    FAILS(waits_at_several(), EAGAIN);
    second_word = 0;
    struct timespec soon = in_ms(CLOCK_REALTIME, 1), bad = BAD_TIME;
    FAILS(syscall(449, several, 2, 0, &soon, CLOCK_REALTIME), ETIMEDOUT);
    FAILS(syscall(449, several, 2, 0, &bad, CLOCK_REALTIME), EINVAL);
    FAILS(syscall(449, several, 2, 0, &soon, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
    FAILS(syscall(449, several, 0, 0, 0, 0), EINVAL);
    FAILS(syscall(449, several, 129, 0, 0, 0), EINVAL);
    FAILS(syscall(449, several, 2, 1, 0, 0), EINVAL);
    FAILS(syscall(449, 0, 2, 0, 0, 0), EINVAL);
    struct waited odd = WAITED((char *)&word + 1, 0), long_word = WAITED(&word, 0);
    FAILS(syscall(449, &odd, 1, 0, 0, 0), EINVAL);
    long_word.flags = 0xffff;
    FAILS(syscall(449, &long_word, 1, 0, 0, 0), EINVAL);
}
CASE(one_of_several_futexes_is_woken, "syscall") {
    word = second_word = 0;
    pthread_t thread = start(waits_for_either, 0);
    usleep(1000);
    wakes_second();
    joined(thread);
}
CASE(several_futexes_are_interrupted_or_restarted, "syscall") {
    word = second_word = 0;
    Waiter waiter = interrupted(waits_at_several, 0);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    INTERRUPTED(interrupted(waits_at_several_for_long, 0));
    waiter = restarted(waits_at_several, wakes_second);
    HOLDS(waiter.result == 1 || waiter.error == EAGAIN);
}
CASE(futex_is_interrupted, "syscall") {
    word = 0;
    Waiter waiter = interrupted(waits_at_word, 0);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    INTERRUPTED(interrupted(waits_at_word_long, SA_RESTART));
}
CASE(futex_is_restarted, "syscall") {
    word = 0;
    Waiter waiter = restarted(waits_at_word, wakes_word);
    // Woken, or begun again with another value.
    HOLDS(waiter.result == 0 || waiter.error == EAGAIN);
}

static int semaphores, messages;
static int takes(void) {
    struct sembuf take = {0, -1, 0};
    return semop(semaphores, &take, 1);
}
static int takes_for_some_time(void) {
    struct sembuf take = {0, -1, 0};
    struct timespec short_time = {0, 2000000};
    return semtimedop(semaphores, &take, 1, &short_time);
}
static void gives(void) {
    struct sembuf give = {0, 1, 0};
    IS(semop(semaphores, &give, 1), 0);
}
static void *gives_in_thread(void *unused) {
    gives();
    return unused;
}
CASE(system_v_semaphores, "semop semtimedop") {
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf without_wait = {0, -1, IPC_NOWAIT}, nowhere = {7, 1, 0};
    FAILS(semop(semaphores, &without_wait, 1), EAGAIN);
    FAILS(semop(semaphores, &nowhere, 1), EFBIG);
    FAILS(semop(-1, &without_wait, 1), EINVAL);
    FAILS(takes_for_some_time(), EAGAIN);
    pthread_t thread = start(gives_in_thread, 0);
    IS(takes(), 0);
    joined(thread);
    semctl(semaphores, 0, IPC_RMID);
}
CASE(system_v_semaphores_are_interrupted, "semop") {
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    Waiter waiter = interrupted(takes, SA_RESTART);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    semctl(semaphores, 0, IPC_RMID);
}
typedef struct {
    long kind;
    char text[8];
} Message;
static int receives(void) {
    Message message;
    return msgrcv(messages, &message, sizeof message.text, 0, 0);
}
static void *sends(void *unused) {
    Message message = {1, "hello"};
    IS(msgsnd(messages, &message, sizeof message.text, 0), 0);
    return unused;
}
CASE(system_v_messages, "msgsnd msgrcv") {
    messages = msgget(IPC_PRIVATE, 0600);
    Message message = {0, ""};
    FAILS(msgrcv(messages, &message, sizeof message.text, 0, IPC_NOWAIT), ENOMSG);
    FAILS(msgsnd(messages, &message, sizeof message.text, 0), EINVAL);
    FAILS(msgsnd(-1, &message, 1, 0), EINVAL);
    pthread_t thread = start(sends, 0);
    IS(receives(), 8);
    joined(thread);
    sends(0);
    FAILS(msgrcv(messages, &message, 1, 0, 0), E2BIG);
    msgctl(messages, IPC_RMID, 0);
}
CASE(system_v_messages_are_interrupted, "msgrcv") {
    messages = msgget(IPC_PRIVATE, 0600);
    Waiter waiter = interrupted(receives, SA_RESTART);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    msgctl(messages, IPC_RMID, 0);
}

static mqd_t queue;
static void open_queue(void) {
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[40];
    snprintf(name, sizeof name, "/conformance-%d", getpid());
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &one);
    HOLDS(queue >= 0);
    mq_unlink(name);
}
static int receives_from_queue(void) {
    char text[8];
    return mq_receive(queue, text, sizeof text, 0);
}
static int receives_long(void) {
    char text[8];
    struct timespec later = in_ms(CLOCK_REALTIME, 100000);
    return mq_timedreceive(queue, text, sizeof text, 0, &later);
}
static int sends_to_queue(void) { return mq_send(queue, "x", 1, 0); }
static void fills(void) { IS(sends_to_queue(), 0); }
static void empties(void) { IS(receives_from_queue(), 1); }
static void *fills_in_thread(void *unused) {
    fills();
    return unused;
}
CASE(queue_passes_messages, "mq_send mq_receive") {
    open_queue();
    pthread_t thread = start(fills_in_thread, 0);
    unsigned priority = 9;
    char text[8];
    IS(mq_receive(queue, text, sizeof text, &priority), 1);
    IS(priority, 0);
    joined(thread);
    FAILS(mq_receive(queue, text, 1, 0), EMSGSIZE);
    FAILS(mq_send(queue, "123456789", 9, 0), EMSGSIZE);
    FAILS(mq_send(-1, "x", 1, 0), EBADF);
    mq_close(queue);
}
CASE(queue_times_out, "mq_timedsend mq_timedreceive") {
    open_queue();
    char text[8];
    struct timespec soon = in_ms(CLOCK_REALTIME, 2), bad = BAD_TIME;
    FAILS(mq_timedreceive(queue, text, sizeof text, 0, &soon), ETIMEDOUT);
    FAILS(mq_timedreceive(queue, text, sizeof text, 0, &bad), EINVAL);
    IS(mq_timedsend(queue, "x", 1, 0, &soon), 0);
    soon = in_ms(CLOCK_REALTIME, 2);
    FAILS(mq_timedsend(queue, "x", 1, 0, &soon), ETIMEDOUT);
    IS(mq_timedreceive(queue, text, sizeof text, 0, &soon), 1);
    mq_close(queue);
}
CASE(queue_is_interrupted, "mq_receive mq_send mq_timedreceive") {
    open_queue();
    Waiter waiter = interrupted(receives_from_queue, 0);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    INTERRUPTED(interrupted(receives_long, 0));
    fills();
    waiter = interrupted(sends_to_queue, 0);
    IS(waiter.result, -1);
    IS(waiter.error, EINTR);
    mq_close(queue);
}
CASE(queue_is_restarted, "mq_receive mq_send") {
    open_queue();
    IS(restarted(receives_from_queue, fills).result, 1);
    fills();
    IS(restarted(sends_to_queue, empties).result, 0);
    mq_close(queue);
}
CASE(queue_without_wait_fails, "mq_send mq_receive") {
    open_queue();
    struct mq_attr attributes = {.mq_flags = O_NONBLOCK};
    char text[8];
    IS(mq_setattr(queue, &attributes, 0), 0);
    FAILS(mq_receive(queue, text, sizeof text, 0), EAGAIN);
    fills();
    FAILS(mq_send(queue, "x", 1, 0), EAGAIN);
    mq_close(queue);
}
