// Whole programs: what threads do together with what POSIX has for it. Whatever the schedule is, each comes to its end and finds
// what it must find.
#include "case.h"
#include <aio.h>
#include <mqueue.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int counted;

static void fresh(pthread_mutex_t *mutex, int kind, int protocol, int robust) {
    pthread_mutexattr_t attributes;
    IS(pthread_mutexattr_init(&attributes), 0);
    IS(pthread_mutexattr_settype(&attributes, kind), 0);
    IS(pthread_mutexattr_setprotocol(&attributes, protocol), 0);
    IS(pthread_mutexattr_setrobust(&attributes, robust), 0);
    IS(pthread_mutex_init(mutex, &attributes), 0);
    IS(pthread_mutexattr_destroy(&attributes), 0);
}

// A queue of messages: two senders, two receivers, room for two. Nothing is lost, nothing comes twice.
enum { MESSAGES = 8 };
static mqd_t queue;
static atomic_int got[2 * MESSAGES];
static void *sends_messages(void *first) {
    for (long i = (long)first; i < (long)first + MESSAGES; i++) {
        char message = (char)i;
        IS(mq_send(queue, &message, 1, i % 3), 0);
    }
    return 0;
}
static void *receives_messages(void *x) {
    for (int i = 0; i < MESSAGES; i++) {
        char message = -1;
        unsigned priority;
        struct timespec last = {LONG_MAX, 0};
        IS(i % 2 ? mq_timedreceive(queue, &message, 1, &priority, &last) : mq_receive(queue, &message, 1, &priority), 1);
        IS(priority, message % 3);
        got[(int)message]++;
    }
    return x;
}
CASE(messages_come_once, "mq_send mq_receive mq_timedreceive") {
    char name[64];
    snprintf(name, sizeof name, "/waylay-%d", getpid());
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 1};
    queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    // Some containers have none.
    if (queue == (mqd_t)-1) return;
    IS(mq_unlink(name), 0);
    memset((void *)got, 0, sizeof got);
    pthread_t all[4] = {start(sends_messages, 0), start(sends_messages, (void *)MESSAGES), start(receives_messages, 0),
                        start(receives_messages, 0)};
    for (int i = 0; i < 4; i++) joined(all[i]);
    for (int i = 0; i < 2 * MESSAGES; i++) IS(got[i], 1);
    IS(mq_close(queue), 0);
}

// Asynchronous writes to different places of one file, awaited in any order.
CASE(asynchronous_writes_arrive, "aio_write aio_suspend aio_read") {
    char name[] = "/tmp/waylay-aio-XXXXXX", data[4][8], back[32] = {0};
    int file = mkstemp(name);
    HOLDS(file >= 0);
    unlink(name);
    struct aiocb blocks[4];
    for (int i = 0; i < 4; i++) {
        memset(data[i], 'a' + i, 8);
        blocks[i] = (struct aiocb){.aio_fildes = file, .aio_buf = data[i], .aio_nbytes = 8, .aio_offset = 8 * i};
        IS(aio_write(&blocks[i]), 0);
    }
    for (int i = 3; i >= 0; i--) {
        const struct aiocb *one[] = {&blocks[i]};
        while (aio_error(&blocks[i]) == EINPROGRESS) aio_suspend(one, 1, 0);
        IS(aio_return(&blocks[i]), 8);
    }
    IS(pread(file, back, 32, 0), 32);
    for (int i = 0; i < 32; i++) IS(back[i], 'a' + i / 8);
    close(file);
}

// Queued signals keep their number, their order and their values.
static void *takes_signals(void *x) {
    sigset_t set = set_of(SIGRTMIN + 1);
    for (int i = 0; i < 5; i++) {
        siginfo_t information;
        struct timespec last = {LONG_MAX, 0};
        IS(i % 2 ? sigtimedwait(&set, &information, &last) : sigwaitinfo(&set, &information), SIGRTMIN + 1);
        IS(information.si_value.sival_int, i);
        IS(information.si_code, SI_QUEUE);
    }
    return x;
}
CASE(queued_signals_keep_their_order, "sigqueue sigwaitinfo sigtimedwait pthread_sigmask") {
    block(SIG_BLOCK, SIGRTMIN + 1);
    pthread_t taker = start(takes_signals, 0);
    for (int i = 0; i < 5; i++) IS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}), 0);
    joined(taker);
    sigset_t set = set_of(SIGRTMIN + 1);
    struct timespec none = {0, 0};
    FAILS(sigtimedwait(&set, 0, &none), EAGAIN);
    block(SIG_UNBLOCK, SIGRTMIN + 1);
}

// Who ends with a robust mutex leaves it to exactly one other, who makes it consistent.
static pthread_mutex_t robust;
static atomic_int inherited;
static void *leaves_it_locked(void *x) {
    int error = pthread_mutex_lock(&robust);
    HOLDS(error == 0 || error == EOWNERDEAD);
    if (error != EOWNERDEAD) return x;
    inherited++;
    IS(pthread_mutex_consistent(&robust), 0);
    return x;
}
CASE(robust_mutexes_are_inherited_once_each, "pthread_mutex_lock pthread_mutex_unlock") {
    for (int protocol = 0; protocol < 2; protocol++) {
        inherited = 0;
        fresh(&robust, PTHREAD_MUTEX_NORMAL, protocol ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
        pthread_t all[3] = {start(leaves_it_locked, 0), start(leaves_it_locked, 0), start(leaves_it_locked, 0)};
        for (int i = 0; i < 3; i++) joined(all[i]);
        IS(inherited, 2);
        IS(pthread_mutex_lock(&robust), EOWNERDEAD);
        // Nobody made it consistent: it is lost.
        IS(pthread_mutex_unlock(&robust), 0);
        IS(pthread_mutex_lock(&robust), ENOTRECOVERABLE);
        IS(pthread_mutex_destroy(&robust), 0);
    }
}

// Each kind of mutex keeps a counter right, and says of its owner what it must.
static pthread_mutex_t kinds[4];
static long sums[4];
static void *adds_by_kind(void *x) {
    for (int round = 0; round < 3; round++)
        for (int kind = 0; kind < 4; kind++) {
            IS(pthread_mutex_lock(&kinds[kind]), 0);
            if (kind == 1) IS(pthread_mutex_lock(&kinds[kind]), 0);
            if (kind == 2) IS(pthread_mutex_lock(&kinds[kind]), EDEADLK);
            IS(pthread_mutex_trylock(&kinds[kind]), kind == 1 ? 0 : EBUSY);
            if (kind == 1) IS(pthread_mutex_unlock(&kinds[kind]), 0);
            sums[kind]++;
            if (kind == 1) IS(pthread_mutex_unlock(&kinds[kind]), 0);
            IS(pthread_mutex_unlock(&kinds[kind]), 0);
            if (kind == 1 || kind == 2) IS(pthread_mutex_unlock(&kinds[kind]), EPERM);
        }
    return x;
}
CASE(mutexes_of_every_kind_exclude, "pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock") {
    fresh(&kinds[0], PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    fresh(&kinds[1], PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    fresh(&kinds[2], PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
    fresh(&kinds[3], PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
    memset(sums, 0, sizeof sums);
    pthread_t all[3] = {start(adds_by_kind, 0), start(adds_by_kind, 0), start(adds_by_kind, 0)};
    for (int i = 0; i < 3; i++) joined(all[i]);
    for (int kind = 0; kind < 4; kind++) {
        IS(sums[kind], 9);
        IS(pthread_mutex_destroy(&kinds[kind]), 0);
    }
}

// Deadlines of a condition variable are of the clock that its attributes say, and no wake-up is lost beside them.
static pthread_cond_t clocked;
static int items;
static clockid_t which;
static void *takes_items(void *x) {
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&lock);
        while (!items) {
            struct timespec soon = in_ms(which, 5);
            int error = pthread_cond_timedwait(&clocked, &lock, &soon);
            HOLDS(error == 0 || error == ETIMEDOUT);
            struct timespec now;
            clock_gettime(which, &now);
            if (error == ETIMEDOUT) HOLDS(now.tv_sec > soon.tv_sec || (now.tv_sec == soon.tv_sec && now.tv_nsec >= soon.tv_nsec));
        }
        items--;
        pthread_mutex_unlock(&lock);
    }
    return x;
}
CASE(conditions_by_every_clock, "pthread_cond_timedwait pthread_cond_signal clock_gettime") {
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (int i = 0; i < 2; i++) {
        pthread_condattr_t attributes;
        IS(pthread_condattr_init(&attributes), 0);
        IS(pthread_condattr_setclock(&attributes, which = clocks[i]), 0);
        IS(pthread_cond_init(&clocked, &attributes), 0);
        pthread_t takers[2] = {start(takes_items, 0), start(takes_items, 0)};
        for (int item = 0; item < 8; item++) {
            pthread_mutex_lock(&lock);
            items++;
            pthread_cond_signal(&clocked);
            pthread_mutex_unlock(&lock);
        }
        joined(takers[0]), joined(takers[1]);
        IS(items, 0);
        IS(pthread_cond_destroy(&clocked), 0);
    }
}

// A barrier that is used again and again: one of each round is told, and nobody is a round ahead.
static pthread_barrier_t barrier;
static atomic_int rounds[4], serials;
static void *meets(void *number) {
    for (int round = 1; round <= 4; round++) {
        rounds[(long)number] = round;
        int told = pthread_barrier_wait(&barrier);
        HOLDS(told == 0 || told == PTHREAD_BARRIER_SERIAL_THREAD);
        serials += told != 0;
        for (int other = 0; other < 3; other++) HOLDS(rounds[other] == round || rounds[other] == round + 1);
        pthread_barrier_wait(&barrier);
    }
    return 0;
}
CASE(barriers_are_reused, "pthread_barrier_wait") {
    serials = 0;
    memset((void *)rounds, 0, sizeof rounds);
    IS(pthread_barrier_init(&barrier, 0, 3), 0);
    pthread_t all[3] = {start(meets, (void *)0), start(meets, (void *)1), start(meets, (void *)2)};
    for (int i = 0; i < 3; i++) joined(all[i]);
    IS(serials, 4);
    IS(pthread_barrier_destroy(&barrier), 0);
}

// A cancelled thread runs its cleanup in the order last in, first out, then its destructors, and has the mutex again before.
static pthread_key_t first_key, second_key;
static char order[16];
static atomic_int placed;
static void note(const void *what) { order[placed++] = *(const char *)what; }
static void cleans(void *what) { note(what); }
static void unlocks(void *what) {
    note(what);
    IS(pthread_mutex_unlock(&lock), 0);
}
static int rounds_left;
static void first_destructor(void *value) {
    note(value);
    // Set again, it is called again.
    if (rounds_left-- > 0) pthread_setspecific(first_key, value);
}
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static void *is_cancelled_in_a_wait(void *x) {
    pthread_setspecific(first_key, "d");
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(cleans, "c");
    pthread_cleanup_push(cleans, "b");
    pthread_cleanup_push(unlocks, "a");
    counted++;
    while (1) pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return x;
}
CASE(cleanup_comes_in_order, "pthread_cancel pthread_cond_wait pthread_join") {
    counted = placed = 0;
    rounds_left = 1;
    memset(order, 0, sizeof order);
    IS(pthread_key_create(&first_key, first_destructor), 0);
    pthread_t thread = start(is_cancelled_in_a_wait, 0);
    while (!counted) sched_yield();
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(strcmp(order, "abcdd"), 0);
    IS(pthread_mutex_trylock(&lock), 0);
    IS(pthread_mutex_unlock(&lock), 0);
    IS(pthread_key_delete(first_key), 0);
}

// Destructors may wait for others, and run while these do.
static atomic_int destroyed;
static void waiting_destructor(void *value) {
    pthread_mutex_lock(&lock);
    destroyed += *(int *)value;
    pthread_mutex_unlock(&lock);
}
static void *has_a_value(void *value) {
    IS(pthread_setspecific(second_key, value), 0);
    HOLDS(pthread_getspecific(second_key) == value);
    return 0;
}
CASE(destructors_run_once_for_each_thread, "pthread_join pthread_mutex_lock pthread_create") {
    static int values[] = {1, 10, 100};
    destroyed = 0;
    IS(pthread_key_create(&second_key, waiting_destructor), 0);
    pthread_t all[3];
    for (int i = 0; i < 3; i++) all[i] = start(has_a_value, &values[i]);
    for (int i = 0; i < 3; i++) joined(all[i]);
    IS(destroyed, 111);
    IS(pthread_key_delete(second_key), 0);
}

// Spin locks, held for long enough that others have to spin.
static pthread_spinlock_t spin;
static int spun;
static void *spins(void *x) {
    for (int i = 0; i < 4; i++) {
        IS(pthread_spin_lock(&spin), 0);
        int before = spun;
        sched_yield();
        spun = before + 1;
        IS(pthread_spin_trylock(&spin), EBUSY);
        IS(pthread_spin_unlock(&spin), 0);
    }
    return x;
}
CASE(spin_locks_exclude, "pthread_spin_lock pthread_spin_trylock pthread_spin_unlock") {
    spun = 0;
    IS(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
    pthread_t all[3] = {start(spins, 0), start(spins, 0), start(spins, 0)};
    for (int i = 0; i < 3; i++) joined(all[i]);
    IS(spun, 12);
    IS(pthread_spin_destroy(&spin), 0);
}

// Readers and writers by every preference: writers are alone, readers see what is whole, and everybody comes to the end.
static pthread_rwlock_t shared;
static int left, right;
static void *reads_pairs(void *x) {
    for (int i = 0; i < 4; i++) {
        IS(pthread_rwlock_rdlock(&shared), 0);
        IS(left, right);
        if (x) {
            // Where readers come first they may read again inside.
            IS(pthread_rwlock_rdlock(&shared), 0);
            IS(pthread_rwlock_unlock(&shared), 0);
        }
        IS(pthread_rwlock_unlock(&shared), 0);
    }
    return 0;
}
static void *writes_pairs(void *x) {
    for (int i = 0; i < 3; i++) {
        IS(pthread_rwlock_wrlock(&shared), 0);
        left++;
        IS(pthread_rwlock_tryrdlock(&shared), EBUSY);
        right++;
        IS(pthread_rwlock_unlock(&shared), 0);
    }
    return x;
}
CASE(readers_and_writers_by_every_preference, "pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock pthread_rwlock_tryrdlock") {
    const int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                         PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
    for (int i = 0; i < 3; i++) {
        pthread_rwlockattr_t attributes;
        IS(pthread_rwlockattr_init(&attributes), 0);
        IS(pthread_rwlockattr_setkind_np(&attributes, kinds[i]), 0);
        IS(pthread_rwlock_init(&shared, &attributes), 0);
        left = right = 0;
        void *again = i == 0 ? &shared : 0;
        pthread_t all[4] = {start(reads_pairs, again), start(writes_pairs, 0), start(reads_pairs, again), start(writes_pairs, 0)};
        for (int j = 0; j < 4; j++) joined(all[j]);
        IS(left, 6);
        IS(pthread_rwlock_destroy(&shared), 0);
    }
}

// What is done once is done when the first call returns, also when the first who tried was cancelled inside.
static pthread_once_t once, cancelled_once;
static int made;
static void makes(void) {
    sched_yield();
    made++;
}
static void *needs_it(void *x) {
    IS(pthread_once(&once, makes), 0);
    IS(made, 1);
    return x;
}
static atomic_int tries;
static void is_cancelled_inside(void) {
    if (tries++ == 0) {
        IS(pthread_cancel(pthread_self()), 0);
        pthread_testcancel();
    }
    made++;
}
static void *tries_it(void *x) {
    IS(pthread_once(&cancelled_once, is_cancelled_inside), 0);
    return x;
}
CASE(once_across_threads, "pthread_once pthread_cancel") {
    once = cancelled_once = PTHREAD_ONCE_INIT;
    made = tries = 0;
    pthread_t all[3] = {start(needs_it, 0), start(needs_it, 0), start(needs_it, 0)};
    for (int i = 0; i < 3; i++) joined(all[i]);
    int ended = 0;
    for (int i = 0; i < 3; i++) all[i] = start(tries_it, 0);
    for (int i = 0; i < 3; i++) ended += joined(all[i]) == PTHREAD_CANCELED;
    IS(ended, 1);
    IS(tries, 2);
    IS(made, 2);
}

// Timers that post, each once, and one that does so until it is stopped.
static sem_t ticks;
static void posts(union sigval value) {
    counted += value.sival_int;
    sem_post(&ticks);
}
CASE(timers_call_as_often_as_they_end, "timer_create timer_settime timer_delete sem_wait") {
    counted = 0;
    IS(sem_init(&ticks, 0, 0), 0);
    timer_t timers[3];
    for (int i = 0; i < 3; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = i == 0 ? 1 : i * 10};
        event.sigev_notify_function = posts;
        IS(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
        struct itimerspec soon = {.it_value = {0, 1000000 * (i + 1)}};
        IS(timer_settime(timers[i], 0, &soon, 0), 0);
    }
    for (int i = 0; i < 3; i++) IS(sem_wait(&ticks), 0);
    IS(counted, 31);
    for (int i = 0; i < 3; i++) IS(timer_delete(timers[i]), 0);
}

// One thread hands a token round by semaphores, another by a condition, a third by a pipe: none of them is lost.
static sem_t turn;
static int ends[2];
static bool has_it;
static void *by_semaphore(void *x) {
    for (int i = 0; i < 3; i++) {
        IS(sem_wait(&turn), 0);
        pthread_mutex_lock(&lock);
        has_it = true;
        pthread_cond_broadcast(&never);
        pthread_mutex_unlock(&lock);
    }
    return x;
}
static void *by_condition(void *x) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        while (!has_it) pthread_cond_wait(&never, &lock);
        has_it = false;
        pthread_mutex_unlock(&lock);
        IS(write(ends[1], "t", 1), 1);
    }
    return x;
}
CASE(a_token_goes_round, "sem_wait pthread_cond_wait read write") {
    char token;
    has_it = false;
    IS(sem_init(&turn, 0, 1), 0);
    IS(pipe(ends), 0);
    pthread_t all[2] = {start(by_semaphore, 0), start(by_condition, 0)};
    for (int i = 0; i < 3; i++) {
        IS(read(ends[0], &token, 1), 1);
        if (i < 2) IS(sem_post(&turn), 0);
    }
    joined(all[0]), joined(all[1]);
    close(ends[0]), close(ends[1]);
}
