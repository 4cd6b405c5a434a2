// What ends a thread or a wait from outside: cancellation at every call that is a point for it, signals in calls that the kernel
// waits in, time that passes while others work, and processes that share objects.
#include "case.h"
#include <aio.h>
#include <mqueue.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

static sem_t begun, asked;
static int null_file, ends[2];
static char byte[8];
static atomic_int cleaned;
static void cleans(void *unused) { cleaned++; }
static void (*point)(void);

// It was asked to end before it comes to the call, and says so.
static void *ends_at_point(void *unused) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    sem_post(&begun);
    while (sem_wait(&asked) != 0) {}
    pthread_cleanup_push(cleans, 0);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    point();
    pthread_cleanup_pop(0);
    return 0;
}
// It is asked to end while it waits.
static void *waits_at_point(void *unused) {
    pthread_cleanup_push(cleans, 0);
    sem_post(&begun);
    point();
    pthread_cleanup_pop(0);
    return 0;
}
static void ask(void *(*routine)(void *), void (*call)(void)) {
    sem_init(&begun, 0, 0), sem_init(&asked, 0, 0);
    null_file = open("/dev/null", O_RDWR);
    IS(pipe(ends), 0);
    point = call;
    cleaned = 0;
    pthread_t thread = start(routine, 0);
    while (sem_wait(&begun) != 0) {}
    if (routine == waits_at_point) usleep(1000);
    IS(pthread_cancel(thread), 0);
    sem_post(&asked);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(cleaned, 1);
    close(null_file), close(ends[0]), close(ends[1]);
}
#define POINT(function, call)                                              \
    static void calls_##function(void) { (void)!(call); }                  \
    CASE(function##_is_a_cancellation_point, #function) { ask(ends_at_point, calls_##function); }
POINT(fsync, fsync(null_file))
POINT(fdatasync, fdatasync(null_file))
POINT(tcdrain, tcdrain(null_file))
POINT(msync, msync(0, 0, MS_SYNC))
POINT(pread, pread(null_file, byte, 1, 0))
POINT(pread64, pread64(null_file, byte, 1, 0))
POINT(pwrite, pwrite(null_file, byte, 1, 0))
POINT(pwrite64, pwrite64(null_file, byte, 1, 0))
POINT(open, open("/dev/null", O_RDONLY))
POINT(open64, open64("/dev/null", O_RDONLY))
POINT(openat, openat(AT_FDCWD, "/dev/null", O_RDONLY))
POINT(openat64, openat64(AT_FDCWD, "/dev/null", O_RDONLY))
POINT(creat, creat("/dev/null", 0600))
POINT(close, close(-1))
POINT(fcntl, fcntl(null_file, F_SETLKW, &(struct flock){.l_type = F_RDLCK}))
POINT(fcntl64, fcntl64(null_file, F_SETLKW, &(struct flock){.l_type = F_RDLCK}))
POINT(lockf, lockf(null_file, F_LOCK, 0))
POINT(write, write(null_file, byte, 1))

static struct aiocb request;
static void waits_for_request(void) {
    const struct aiocb *list[] = {&request};
    aio_suspend(list, 1, 0);
}
static void waits_for_request64(void) {
    const struct aiocb64 *list[] = {(struct aiocb64 *)&request};
    aio_suspend64(list, 1, 0);
}
static void request_to_read(int fd) {
    memset(&request, 0, sizeof request);
    request.aio_fildes = fd, request.aio_buf = byte, request.aio_nbytes = 1;
    IS(aio_read(&request), 0);
}
static void wait_for_request_to_end(int fd) {
    IS(write(fd, "x", 1), 1);
    while (aio_error(&request) == EINPROGRESS) usleep(100);
    IS(aio_return(&request), 1);
}
static void *writes_later(void *unused) {
    usleep(1000);
    IS(write(ends[1], "x", 1), 1);
    return unused;
}
CASE(requests_are_waited_for, "aio_suspend aio_suspend64 aio_read") {
    int own[2];
    IS(pipe(own), 0);
    request_to_read(own[0]);
    const struct aiocb *list[] = {&request};
    struct timespec short_time = {0, 1000000};
    FAILS(aio_suspend(list, 1, &short_time), EAGAIN);
    ask(ends_at_point, waits_for_request);
    ask(ends_at_point, waits_for_request64);
    ask(waits_at_point, waits_for_request);
    wait_for_request_to_end(own[1]);
    memcpy(ends, own, sizeof own);
    request_to_read(own[0]);
    pthread_t thread = start(writes_later, 0);
    while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, 0);
    IS(aio_return(&request), 1);
    joined(thread);
    close(own[0]), close(own[1]);
}
CASE(commands_of_fcntl_are_passed_on, "fcntl fcntl64") {
    int fd = open("/dev/null", O_RDONLY), copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    HOLDS(copy >= 100);
    IS(fcntl(copy, F_GETFD), FD_CLOEXEC);
    IS(fcntl64(copy, F_SETFD, 0), 0);
    IS(fcntl(copy, F_GETFD), 0);
    FAILS(fcntl(-1, F_GETFD), EBADF);
    FAILS(fcntl(fd, 12345), EINVAL);
    FAILS(fcntl(-1, F_SETLKW, &(struct flock){.l_type = F_RDLCK}), EBADF);
    close(fd), close(copy);
}
CASE(calls_that_are_points_do_what_they_should, "fsync fdatasync tcdrain msync pread pread64 pwrite pwrite64") {
    FILE *file = tmpfile();
    int fd = fileno(file);
    IS(pwrite(fd, "abcd", 4, 2), 4);
    IS(pwrite64(fd, "z", 1, 0), 1);
    IS(pread(fd, byte, 8, 2), 4);
    IS(byte[3], 'd');
    IS(pread64(fd, byte, 1, 0), 1);
    IS(byte[0], 'z');
    IS(fsync(fd), 0);
    IS(fdatasync(fd), 0);
    FAILS(fsync(-1), EBADF);
    FAILS(fdatasync(-1), EBADF);
    FAILS(pread(-1, byte, 1, 0), EBADF);
    FAILS(pwrite64(fd, byte, 1, -1), EINVAL);
    FAILS(tcdrain(fd), ENOTTY);
    FAILS(msync((void *)1, 1, MS_SYNC), EINVAL);
    fclose(file);
}

static pthread_barrier_t barrier;
static void *waits_at_barrier(void *reached) {
    sem_post(&begun);
    pthread_barrier_wait(&barrier);
    *(atomic_int *)reached = 1;
    pthread_testcancel();
    return 0;
}
CASE(barriers_are_no_cancellation_points, "pthread_barrier_wait pthread_cancel") {
    atomic_int reached = 0;
    sem_init(&begun, 0, 0);
    IS(pthread_barrier_init(&barrier, 0, 2), 0);
    pthread_t thread = start(waits_at_barrier, &reached);
    sem_wait(&begun);
    IS(pthread_cancel(thread), 0);
    pthread_barrier_wait(&barrier);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(reached, 1);
}
static void *cancels_itself(void *reached) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    pthread_cancel(pthread_self());
    *(atomic_int *)reached = 1;
    return 0;
}
CASE(who_may_end_anywhere_ends_itself_at_once, "pthread_cancel pthread_setcanceltype") {
    atomic_int reached = 0;
    HOLDS(joined(start(cancels_itself, &reached)) == PTHREAD_CANCELED);
    IS(reached, 0);
}

static void *finds_all_blocked(void *unused) {
    sigset_t mask;
    IS(pthread_sigmask(SIG_BLOCK, 0, &mask), 0);
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP) HOLDS(sigismember(&mask, number));
    return unused;
}
CASE(threads_inherit_every_blocked_signal, "pthread_create pthread_sigmask") {
    sigset_t all, before;
    sigfillset(&all);
    IS(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    joined(start(finds_all_blocked, 0));
    IS(pthread_sigmask(SIG_SETMASK, &before, 0), 0);
}
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int counted;
static void *counts(void *mutex) {
    IS(pthread_mutex_lock(mutex), 0);
    counted++;
    IS(pthread_mutex_unlock(mutex), 0);
    return 0;
}
CASE(smallest_stacks_suffice, "pthread_create") {
    pthread_attr_t attributes;
    pthread_t threads[40];
    pthread_attr_init(&attributes);
    IS(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN), 0);
    counted = 0;
    pthread_mutex_lock(&counting);
    for (int i = 0; i < 40; i++) IS(pthread_create(&threads[i], &attributes, counts, &counting), 0);
    pthread_mutex_unlock(&counting);
    for (int i = 0; i < 40; i++) joined(threads[i]);
    IS(counted, 40);
}
// Only those who may use real-time priorities can lock such a mutex.
CASE(mutexes_with_a_ceiling, "pthread_mutex_lock pthread_mutex_unlock pthread_mutex_trylock") {
    struct sched_param high = {10}, low = {0};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &high) != 0) return;
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attributes);
    IS(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT), 0);
    IS(pthread_mutexattr_setprioceiling(&attributes, 20), 0);
    IS(pthread_mutex_init(&mutex, &attributes), 0);
    counted = 0;
    pthread_t first = start(counts, &mutex), second = start(counts, &mutex);
    IS(pthread_mutex_lock(&mutex), 0);
    IS(pthread_mutex_trylock(&mutex), EBUSY);
    IS(pthread_mutex_unlock(&mutex), 0);
    joined(first), joined(second);
    IS(counted, 2);
    high.sched_priority = 30;
    IS(pthread_setschedparam(pthread_self(), SCHED_FIFO, &high), 0);
    IS(pthread_mutex_lock(&mutex), EINVAL);
    IS(pthread_setschedparam(pthread_self(), SCHED_OTHER, &low), 0);
}

static void *measures_itself(void *unused) {
    struct timespec used;
    IS(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), 0);
    HOLDS(used.tv_sec == 0 && used.tv_nsec < 50000000);
    return unused;
}
CASE(sleep_is_no_processor_time, "clock_gettime clock nanosleep") {
    struct timespec before, after, other, length = {0, 200000000};
    clockid_t clock_of_thread;
    clock_t ticks = clock();
    IS(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before), 0);
    IS(nanosleep(&length, 0), 0);
    IS(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after), 0);
    HOLDS((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec < 190000000);
    HOLDS((clock() - ticks) / (CLOCKS_PER_SEC / 1000) < 190);
    joined(start(measures_itself, 0));
    IS(pthread_getcpuclockid(pthread_self(), &clock_of_thread), 0);
    IS(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before), 0);
    IS(clock_gettime(clock_of_thread, &other), 0);
    IS(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after), 0);
    HOLDS(other.tv_nsec + other.tv_sec * 1000000000 >= before.tv_nsec + before.tv_sec * 1000000000);
    HOLDS(after.tv_nsec + after.tv_sec * 1000000000 >= other.tv_nsec + other.tv_sec * 1000000000);
    IS(clock_getcpuclockid(getppid(), &clock_of_thread), 0);
    IS(clock_gettime(clock_of_thread, &other), 0);
}

static atomic_int flag;
static volatile int plain_flag;
static void *sets_flags_later(void *unused) {
    usleep(20000);
    plain_flag = 1;
    flag = 1;
    return unused;
}
CASE(who_only_looks_lets_sleepers_wake, "usleep sched_yield") {
    flag = plain_flag = 0;
    pthread_t thread = start(sets_flags_later, 0);
    while (!plain_flag) {}
    while (!flag) sched_yield();
    joined(thread);
}
static void *works_until_told(void *unused) {
    while (!flag) counts(&counting);
    return unused;
}
CASE(who_works_lets_sleepers_wake, "usleep pthread_mutex_lock alarm") {
    flag = 0;
    pthread_t first = start(works_until_told, 0), second = start(works_until_told, 0);
    usleep(2000);
    flag = 1;
    joined(first), joined(second);
    flag = 0;
    handle(SIGALRM, 0);
    ualarm(2000, 0);
    while (!handled) counts(&counting);
}
CASE(time_passes_for_who_only_looks_at_it, "clock_gettime gettimeofday time") {
    struct timespec until = in_ms(CLOCK_MONOTONIC, 30), now;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
    time_t begin = time(0);
    while (time(0) == begin) {}
}

// Calls in which the kernel waits, and what handlers make of them.
static int (*waiting)(void);
static int results[2];
static atomic_int done;
static void *waits_in_kernel(void *unused) {
    sem_post(&begun);
    errno = 0;
    results[0] = waiting(), results[1] = errno;
    done = 1;
    return unused;
}
static void interrupt_wait(int (*call)(void)) {
    handle(SIGUSR1, 0);
    sem_init(&begun, 0, 0);
    waiting = call;
    done = 0;
    pthread_t thread = start(waits_in_kernel, 0);
    sem_wait(&begun);
    poke(thread, SIGUSR1, &done);
    joined(thread);
    IS(results[0], -1);
    // A strategy may let the time of a wait come before the signal.
    if (results[1] != ETIMEDOUT) IS(results[1], EINTR);
}
// It begins again behind a handler, until it gets what it waits for.
static void restart_wait(int (*call)(void), void (*finish)(void), int wanted) {
    handle(SIGUSR1, SA_RESTART);
    sem_init(&begun, 0, 0);
    waiting = call, done = 0;
    pthread_t thread = start(waits_in_kernel, 0);
    sem_wait(&begun);
    usleep(2000);
    poke_times(thread, SIGUSR1, 2);
    IS(done, 0);
    finish();
    joined(thread);
    IS(results[0], wanted);
}
static mqd_t queue;
static int sends_in_time(void) {
    struct timespec late = in_ms(CLOCK_REALTIME, 20000);
    return mq_timedsend(queue, "y", 1, 0, &late);
}
CASE(timed_sending_is_interrupted, "mq_timedsend") {
    char name[40];
    struct mq_attr one = {.mq_maxmsg = 1, .mq_msgsize = 8};
    snprintf(name, sizeof name, "/waylay-ending-%d", getpid());
    queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &one);
    HOLDS(queue >= 0);
    mq_unlink(name);
    IS(mq_send(queue, "x", 1, 0), 0);
    interrupt_wait(sends_in_time);
    struct timespec late = in_ms(CLOCK_REALTIME, 2);
    FAILS(mq_timedsend(queue, "y", 1, 0, &late), ETIMEDOUT);
    mq_close(queue);
}
static int semaphores, messages;
static int takes_in_time(void) {
    struct sembuf take = {0, -1, 0};
    struct timespec long_time = {20, 0};
    return semtimedop(semaphores, &take, 1, &long_time);
}
CASE(timed_system_v_semaphores_are_interrupted, "semtimedop") {
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    interrupt_wait(takes_in_time);
    semctl(semaphores, 0, IPC_RMID);
}
static struct {
    long kind;
    char text[4096];
} message = {.kind = 1};
static int sends_to_full_queue(void) { return msgsnd(messages, &message, sizeof message.text, 0); }
CASE(sending_system_v_messages_is_interrupted, "msgsnd") {
    messages = msgget(IPC_PRIVATE, 0600);
    while (msgsnd(messages, &message, sizeof message.text, IPC_NOWAIT) == 0) {}
    IS(errno, EAGAIN);
    interrupt_wait(sends_to_full_queue);
    msgctl(messages, IPC_RMID, 0);
}
static struct sockaddr_un address;
static int listener, clients[3];
static int connects(void) { return connect(clients[2], (struct sockaddr *)&address, sizeof address); }
static void accepts(void) { close(accept(listener, 0, 0)); }
// A backlog of none holds one connection, so that the next waits.
static void fill_backlog(void) {
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path + 1, 40, "waylay-ending-%d", getpid());
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    IS(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    IS(listen(listener, 0), 0);
    for (int i = 0; i < 3; i++) clients[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    IS(connect(clients[0], (struct sockaddr *)&address, sizeof address), 0);
}
static void empty_backlog(void) {
    for (int i = 0; i < 3; i++) close(clients[i]);
    close(listener);
}
CASE(connecting_is_interrupted, "connect") { fill_backlog(), interrupt_wait(connects), empty_backlog(); }
CASE(connecting_begins_again, "connect") { fill_backlog(), restart_wait(connects, accepts, 0), empty_backlog(); }

static pthread_once_t once;
static atomic_int initialised;
static void initialises_slowly(void) {
    sem_post(&asked);
    while (!flag) usleep(200);
    initialised++;
}
static int waits_for_once(void) { return pthread_once(&once, initialises_slowly); }
static void *does_once(void *unused) {
    IS(waits_for_once(), 0);
    return unused;
}
static void lets_it_be_done(void) { flag = 1; }
CASE(waiting_for_once_goes_on_behind_handlers, "pthread_once") {
    sem_init(&asked, 0, 0);
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    flag = initialised = 0;
    pthread_t first = start(does_once, 0);
    sem_wait(&asked);
    restart_wait(waits_for_once, lets_it_be_done, 0);
    joined(first);
    IS(initialised, 1);
}

// Processes, each case in one of its own: a run in which one was started is partly controlled from there on.
static pid_t child;
static int tells[2], file;
static void make_child(int locks) {
    IS(pipe(tells), 0);
    child = fork();
    if (child == 0) {
        if (locks && lockf(file, F_LOCK, 0) != 0) _exit(1);
        (void)!write(tells[1], "x", 1);
        char c;
        close(tells[1]);
        // Until the parent lets go.
        struct flock rest = {.l_type = F_RDLCK};
        fcntl(file, F_GETLK, &rest);
        while (getppid() != 1 && read(ends[0], &c, 1) < 0) {}
        _exit(0);
    }
    IS(read(tells[0], byte, 1), 1);
    close(tells[0]), close(tells[1]);
}
static void let_child_go(void) { IS(write(ends[1], "x", 1), 1); }
static int waits_for_child(void) { return waitpid(child, 0, 0); }
static int locks_file(void) { return lockf(file, F_LOCK, 0); }
static int locks_by_command(void) { return fcntl(file, F_SETLKW, &(struct flock){.l_type = F_WRLCK}); }
ONLY(waiting_for_children_is_interrupted, "waitpid") {
    IS(pipe(ends), 0);
    make_child(0);
    interrupt_wait(waits_for_child);
    ask(waits_at_point, (void (*)(void))waits_for_child);
    IS(pipe(ends), 0);
    kill(child, SIGKILL);
    IS(waitpid(child, 0, 0), child);
    make_child(0);
    restart_wait(waits_for_child, let_child_go, child);
    close(ends[0]), close(ends[1]);
}
ONLY(locking_files_is_interrupted, "lockf fcntl") {
    IS(pipe(ends), 0);
    FILE *temporary = tmpfile();
    file = fileno(temporary);
    make_child(1);
    interrupt_wait(locks_file);
    interrupt_wait(locks_by_command);
    restart_wait(locks_file, let_child_go, 0);
    IS(waitpid(child, 0, 0), child);
    fclose(temporary), close(ends[0]), close(ends[1]);
}
ONLY(signals_of_children_end_a_suspension, "sigsuspend fork") {
    handle(SIGUSR1, 0);
    block(SIG_BLOCK, SIGUSR1);
    child = fork();
    if (child == 0) {
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    sigset_t none = set_of(0);
    FAILS(sigsuspend(&none), EINTR);
    IS(handled, 1);
    block(SIG_UNBLOCK, SIGUSR1);
    IS(waitpid(child, 0, 0), child);
}

// Threads that wait already when the process is started that ends their wait.
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
    sem_t semaphore;
    int set;
} Shared;
static Shared *shared;
static void *waits_for_semaphore(void *unused) {
    sem_post(&begun);
    IS(sem_wait(&shared->semaphore), 0);
    return unused;
}
static void *waits_for_condition(void *unused) {
    pthread_mutex_lock(&shared->mutex);
    sem_post(&begun);
    while (!shared->set) IS(pthread_cond_wait(&shared->condition, &shared->mutex), 0);
    pthread_mutex_unlock(&shared->mutex);
    return unused;
}
static void *waits_for_others(void *unused) {
    sem_post(&begun);
    int result = pthread_barrier_wait(&shared->barrier);
    HOLDS(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    return unused;
}
ONLY(children_end_waits_that_began_before_them, "fork sem_wait pthread_cond_wait pthread_barrier_wait") {
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_condition;
    pthread_barrierattr_t of_barrier;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&of_mutex), pthread_condattr_init(&of_condition), pthread_barrierattr_init(&of_barrier);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&of_barrier, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &of_mutex);
    pthread_cond_init(&shared->condition, &of_condition);
    pthread_barrier_init(&shared->barrier, &of_barrier, 2);
    sem_init(&shared->semaphore, 1, 0), sem_init(&begun, 0, 0);
    pthread_t threads[] = {start(waits_for_semaphore, 0), start(waits_for_condition, 0), start(waits_for_others, 0)};
    for (int i = 0; i < 3; i++) sem_wait(&begun);
    usleep(1000);
    child = fork();
    if (child == 0) {
        sem_post(&shared->semaphore);
        pthread_mutex_lock(&shared->mutex);
        shared->set = 1;
        pthread_cond_broadcast(&shared->condition);
        pthread_mutex_unlock(&shared->mutex);
        pthread_barrier_wait(&shared->barrier);
        _exit(0);
    }
    for (int i = 0; i < 3; i++) joined(threads[i]);
    IS(waitpid(child, 0, 0), child);
}
