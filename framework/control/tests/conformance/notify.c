// What timers and message queues tell a program: by calls on threads of their own, or not at all.
#include "case.h"
#include <mqueue.h>
#include <sys/time.h>

static sem_t first, second;
static atomic_int calls;

static timer_t calling(void (*function)(union sigval), pthread_attr_t *attributes) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = function};
    event.sigev_notify_attributes = attributes;
    event.sigev_value.sival_int = 7;
    timer_t timer;
    IS(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    return timer;
}

// The first call goes on when the second has come.
static void waits_for_the_next(union sigval value) {
    IS(value.sival_int, 7);
    if (calls++ == 0) {
        IS(sem_wait(&second), 0);
        sem_post(&first);
    } else {
        sem_post(&second);
    }
}
CASE(calls_of_a_timer_wait_for_each_other, "timer_create timer_settime timer_delete sem_wait") {
    sem_init(&first, 0, 0);
    sem_init(&second, 0, 0);
    timer_t timer = calling(waits_for_the_next, 0);
    struct itimerspec often = {{0, 2000000}, {0, 2000000}};
    IS(timer_settime(timer, 0, &often, 0), 0);
    IS(sem_wait(&first), 0);
    IS(timer_delete(timer), 0);
    // What is on its way is not called back by timer_delete.
    usleep(20000);
}

// Calls that are on their way when their case is over find what is theirs: no sleep makes sure that they have come.
static sem_t has_ended, has_set_it, has_looked;
static void ends_its_thread(union sigval value) {
    sem_post(&has_ended);
    pthread_exit(0);
}
CASE(calls_of_a_timer_end_their_thread, "timer_create timer_settime timer_delete pthread_exit") {
    sem_init(&has_ended, 0, 0);
    timer_t timer = calling(ends_its_thread, 0);
    struct itimerspec often = {{0, 2000000}, {0, 2000000}}, once = {{0, 0}, {0, 1000000}};
    IS(timer_settime(timer, 0, &often, 0), 0);
    for (int i = 0; i < 3; i++) IS(sem_wait(&has_ended), 0);
    IS(timer_settime(timer, 0, &once, 0), 0);
    IS(sem_wait(&has_ended), 0);
    // One that is over can be set again.
    IS(timer_settime(timer, 0, &once, 0), 0);
    IS(sem_wait(&has_ended), 0);
    IS(timer_delete(timer), 0);
    usleep(20000);
}

static timer_t again;
static atomic_int times_set;
static void sets_it_again(union sigval value) {
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    if (++times_set < 3) IS(timer_settime(again, 0, &once, 0), 0);
    else sem_post(&has_set_it);
}
CASE(a_call_sets_its_timer_again, "timer_create timer_settime timer_delete") {
    sem_init(&has_set_it, 0, 0);
    times_set = 0;
    again = calling(sets_it_again, 0);
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    IS(timer_settime(again, 0, &once, 0), 0);
    IS(sem_wait(&has_set_it), 0);
    IS(times_set, 3);
    IS(timer_delete(again), 0);
}

static size_t stack_size;
static int detached_state;
static void looks_at_itself(union sigval value) {
    pthread_attr_t own;
    IS(pthread_getattr_np(pthread_self(), &own), 0);
    IS(pthread_attr_getstacksize(&own, &stack_size), 0);
    IS(pthread_attr_getdetachstate(&own, &detached_state), 0);
    pthread_attr_destroy(&own);
    sem_post(&has_looked);
}
CASE(calls_have_the_stack_that_was_asked_for, "timer_create timer_settime timer_delete pthread_getattr_np") {
    pthread_attr_t wanted;
    pthread_attr_init(&wanted);
    pthread_attr_setstacksize(&wanted, 16 << 20);
    sem_init(&has_looked, 0, 0);
    timer_t timer = calling(looks_at_itself, &wanted);
    pthread_attr_destroy(&wanted);
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    IS(timer_settime(timer, 0, &once, 0), 0);
    IS(sem_wait(&has_looked), 0);
    HOLDS(stack_size >= 16 << 20);
    IS(detached_state, PTHREAD_CREATE_DETACHED);
    IS(timer_delete(timer), 0);
}

CASE(a_timer_that_tells_nobody_shows_what_is_left, "timer_create timer_settime timer_gettime timer_delete") {
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    IS(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct itimerspec later = {{0, 0}, {5, 0}}, shown;
    IS(timer_settime(timer, 0, &later, 0), 0);
    sched_yield();
    IS(timer_gettime(timer, &shown), 0);
    HOLDS(shown.it_value.tv_sec > 0 && shown.it_value.tv_sec <= 5);
    later.it_value = in_ms(CLOCK_MONOTONIC, -1000);
    IS(timer_settime(timer, TIMER_ABSTIME, &later, 0), 0);
    IS(timer_gettime(timer, &shown), 0);
    IS(shown.it_value.tv_sec, 0);
    IS(shown.it_value.tv_nsec, 0);
    later.it_interval.tv_sec = 100;
    later.it_value = in_ms(CLOCK_MONOTONIC, -1000);
    IS(timer_settime(timer, TIMER_ABSTIME, &later, 0), 0);
    IS(timer_gettime(timer, &shown), 0);
    HOLDS(shown.it_value.tv_sec >= 98 && shown.it_value.tv_sec < 100);
    IS(timer_delete(timer), 0);
}

CASE(interval_timers_that_do_not_exist, "setitimer getitimer") {
    struct itimerval none = {{0, 0}, {0, 0}};
    FAILS(setitimer(99, &none, 0), EINVAL);
    FAILS(getitimer(99, &none), EINVAL);
}

CASE(alarms_of_microseconds, "ualarm sigsuspend") {
    handle(SIGALRM, 0);
    block(SIG_BLOCK, SIGALRM);
    sigset_t none = set_of(0);
    IS(ualarm(2000, 2000), 0);
    while (handled < 3) FAILS(sigsuspend(&none), EINTR);
    HOLDS(ualarm(0, 0) <= 2000);
    IS(ualarm(0, 0), 0);
    FAILS((int)ualarm(1000000, 0), EINVAL);
    block(SIG_UNBLOCK, SIGALRM);
}

static mqd_t queue;
static sem_t has_come;
static void receives(union sigval value) {
    char byte[16];
    IS(value.sival_int, 8);
    IS(mq_receive(queue, byte, sizeof byte, 0), 1);
    sem_post(&has_come);
}
static void *sends(void *argument) {
    IS(mq_send(queue, "z", 1, 3), 0);
    return argument;
}
CASE(a_message_calls_a_function, "mq_notify mq_send mq_receive") {
    char name[40];
    sprintf(name, "/waylay-notify-%d", getpid());
    struct mq_attr small = {.mq_maxmsg = 4, .mq_msgsize = 16};
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &small);
    // Some machines have no message queues.
    if (queue == (mqd_t)-1) return;
    mq_unlink(name);
    sem_init(&has_come, 0, 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = receives};
    event.sigev_value.sival_int = 8;
    for (int i = 0; i < 2; i++) {
        IS(mq_notify(queue, &event), 0);
        joined(start(sends, 0));
        IS(sem_wait(&has_come), 0);
    }
    IS(mq_notify(queue, 0), 0);
    mq_close(queue);
    FAILS(mq_notify(queue, &event), EBADF);
}
