// Threads: creating, joining, detaching, cancelling, keys, and C11's names for all that.
#include "case.h"
#include <link.h>
#include <threads.h>

static atomic_int flag;
static void *returns(void *argument) { return argument; }
static void *waits_for_flag(void *argument) {
    while (!flag) usleep(200);
    return argument;
}
CASE(thread_returns_a_value, "pthread_create pthread_join") { HOLDS(joined(start(returns, &flag)) == &flag); }
static void *exits(void *argument) {
    pthread_exit(argument);
    return 0;
}
CASE(thread_exits_with_a_value, "pthread_exit") { HOLDS(joined(start(exits, &flag)) == &flag); }
CASE(joining_oneself, "pthread_join pthread_timedjoin_np") {
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    IS(pthread_join(pthread_self(), 0), EDEADLK);
    IS(pthread_tryjoin_np(pthread_self(), 0), EBUSY);
    IS(pthread_timedjoin_np(pthread_self(), 0, &soon), EDEADLK);
}
CASE(joining_what_is_detached, "pthread_join pthread_detach") {
    flag = 0;
    pthread_t thread = start(waits_for_flag, 0);
    IS(pthread_detach(thread), 0);
    IS(pthread_join(thread, 0), EINVAL);
    IS(pthread_detach(thread), EINVAL);
    flag = 1;
}
CASE(joining_has_an_end, "pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np") {
    flag = 0;
    pthread_t thread = start(waits_for_flag, &flag);
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    void *result = 0;
    IS(pthread_tryjoin_np(thread, 0), EBUSY);
    IS(pthread_timedjoin_np(thread, 0, &soon), ETIMEDOUT);
    soon = in_ms(CLOCK_MONOTONIC, 2);
    IS(pthread_clockjoin_np(thread, 0, CLOCK_MONOTONIC, &soon), ETIMEDOUT);
    IS(pthread_clockjoin_np(thread, 0, CLOCK_BOOTTIME, &soon), EINVAL);
    flag = 1;
    IS(pthread_join(thread, &result), 0);
    HOLDS(result == &flag);
}
static void *joins(void *thread) { return joined(*(pthread_t *)thread); }
CASE(joining_goes_on_behind_handlers, "pthread_join pthread_kill") {
    handle(SIGUSR1, 0);
    flag = 0;
    pthread_t thread = start(waits_for_flag, &flag), joiner = start(joins, &thread);
    poke_times(joiner, SIGUSR1, 2);
    flag = 1;
    HOLDS(joined(joiner) == &flag);
}
CASE(joining_is_a_cancellation_point, "pthread_join pthread_cancel") {
    flag = 0;
    pthread_t thread = start(waits_for_flag, &flag), joiner = start(joins, &thread);
    usleep(500);
    IS(pthread_cancel(joiner), 0);
    HOLDS(joined(joiner) == PTHREAD_CANCELED);
    flag = 1;
    joined(thread);
}
CASE(creating_with_attributes, "pthread_create pthread_getattr_np") {
    pthread_attr_t attributes;
    int state;
    pthread_attr_init(&attributes);
    IS(pthread_attr_setdetachstate(&attributes, 99), EINVAL);
    IS(pthread_attr_setstacksize(&attributes, 1), EINVAL);
    IS(pthread_getattr_np(pthread_self(), &attributes), 0);
    IS(pthread_attr_getdetachstate(&attributes, &state), 0);
    IS(state, PTHREAD_CREATE_JOINABLE);
    pthread_attr_destroy(&attributes);
}
CASE(policies_and_priorities, "pthread_create") {
    struct sched_param parameters = {.sched_priority = 7};
    int policy = -1;
    IS(pthread_getschedparam(pthread_self(), &policy, &parameters), 0);
    IS(policy, SCHED_OTHER);
    IS(parameters.sched_priority, 0);
    IS(pthread_setschedparam(pthread_self(), 99, &parameters), EINVAL);
    parameters.sched_priority = 1000;
    IS(pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters), EINVAL);
    parameters.sched_priority = 0;
    IS(pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters), 0);
    IS(pthread_getschedparam(pthread_self(), &policy, &parameters), 0);
    IS(policy, SCHED_BATCH);
    IS(pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters), 0);
}

static void *tests_for_ever(void *unused) {
    for (;;) {
        pthread_testcancel();
        sched_yield();
    }
    return unused;
}
static void *is_cancelled_anywhere(void *unused) {
    IS(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0), 0);
    for (;;) sched_yield();
    return unused;
}
static void *is_cancelled_later(void *unused) {
    int old;
    IS(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
    IS(old, PTHREAD_CANCEL_ENABLE);
    flag = 1;
    while (flag < 2) usleep(100);
    pthread_testcancel();
    flag = 3;
    IS(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
    IS(old, PTHREAD_CANCEL_DISABLE);
    pthread_testcancel();
    flag = 4;
    return unused;
}
CASE(cancelling_where_a_thread_asks, "pthread_cancel pthread_testcancel") {
    pthread_t thread = start(tests_for_ever, 0);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
}
CASE(cancelling_anywhere, "pthread_cancel pthread_setcanceltype") {
    pthread_t thread = start(is_cancelled_anywhere, 0);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(pthread_setcanceltype(99, 0), EINVAL);
    IS(pthread_setcancelstate(99, 0), EINVAL);
}
CASE(cancelling_is_put_off, "pthread_setcancelstate pthread_testcancel") {
    flag = 0;
    pthread_t thread = start(is_cancelled_later, 0);
    while (!flag) sched_yield();
    IS(pthread_cancel(thread), 0);
    flag = 2;
    HOLDS(joined(thread) == PTHREAD_CANCELED);
    IS(flag, 3);
}

static pthread_key_t key;
static atomic_int destroyed;
static void destroys(void *unused) { destroyed++; }
static void *sets(void *unused) {
    IS(pthread_setspecific(key, &key), 0);
    return unused;
}
CASE(keys_are_destroyed, "pthread_key_create pthread_key_delete") {
    destroyed = 0;
    IS(pthread_key_create(&key, destroys), 0);
    HOLDS(pthread_getspecific(key) == 0);
    joined(start(sets, 0));
    IS(destroyed, 1);
    IS(pthread_key_delete(key), 0);
    IS(pthread_key_delete(key), EINVAL);
    IS(pthread_setspecific(key, &key), EINVAL);
}

static int c_routine(void *argument) { return (int)(long)argument; }
static int c_exits(void *argument) { thrd_exit(5); }
static int c_yields(void *argument) {
    while (!flag) thrd_yield();
    return 0;
}
CASE(c_threads, "thrd_create thrd_join thrd_exit thrd_detach thrd_yield") {
    thrd_t thread;
    int result = 0;
    IS(thrd_create(&thread, c_routine, (void *)42), thrd_success);
    IS(thrd_join(thread, &result), thrd_success);
    IS(result, 42);
    IS(thrd_create(&thread, c_exits, 0), thrd_success);
    IS(thrd_join(thread, &result), thrd_success);
    IS(result, 5);
    flag = 0;
    IS(thrd_create(&thread, c_yields, 0), thrd_success);
    IS(thrd_detach(thread), thrd_success);
    flag = 1;
}
static mtx_t c_mutex;
static cnd_t c_condition;
static int c_tries(void *unused) { return mtx_trylock(&c_mutex); }
static int c_waits_in_vain(void *unused) {
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    return mtx_timedlock(&c_mutex, &soon);
}
static int c_result(thrd_start_t routine) {
    thrd_t thread;
    int result = -1;
    IS(thrd_create(&thread, routine, 0), thrd_success);
    IS(thrd_join(thread, &result), thrd_success);
    return result;
}
CASE(c_mutexes, "mtx_lock mtx_trylock mtx_timedlock mtx_unlock") {
    IS(mtx_init(&c_mutex, mtx_timed), thrd_success);
    IS(mtx_lock(&c_mutex), thrd_success);
    IS(c_result(c_tries), thrd_busy);
    IS(c_result(c_waits_in_vain), thrd_timedout);
    IS(mtx_unlock(&c_mutex), thrd_success);
    IS(c_result(c_tries), thrd_success);
    mtx_destroy(&c_mutex);
}
static int c_waits(void *unused) {
    mtx_lock(&c_mutex);
    while (!flag) IS(cnd_wait(&c_condition, &c_mutex), thrd_success);
    mtx_unlock(&c_mutex);
    return 0;
}
CASE(c_conditions, "cnd_wait cnd_timedwait cnd_signal cnd_broadcast") {
    mtx_init(&c_mutex, mtx_timed), cnd_init(&c_condition);
    flag = 0;
    thrd_t threads[2];
    for (int i = 0; i < 2; i++) IS(thrd_create(&threads[i], c_waits, 0), thrd_success);
    mtx_lock(&c_mutex);
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    IS(cnd_timedwait(&c_condition, &c_mutex, &soon), thrd_timedout);
    flag = 1;
    IS(cnd_signal(&c_condition), thrd_success);
    IS(cnd_broadcast(&c_condition), thrd_success);
    mtx_unlock(&c_mutex);
    for (int i = 0; i < 2; i++) IS(thrd_join(threads[i], 0), thrd_success);
}
static once_flag c_once = ONCE_FLAG_INIT;
static void c_initialises(void) { destroyed++; }
CASE(c_once_and_keys, "call_once tss_create tss_delete") {
    destroyed = 0;
    call_once(&c_once, c_initialises), call_once(&c_once, c_initialises);
    IS(destroyed, 1);
    tss_t c_key;
    IS(tss_create(&c_key, 0), thrd_success);
    IS(tss_set(c_key, &c_key), thrd_success);
    HOLDS(tss_get(c_key) == &c_key);
    tss_delete(c_key);
}
CASE(processors, "sched_yield sched_getcpu sched_getaffinity sched_setaffinity pthread_getaffinity_np pthread_setaffinity_np") {
    cpu_set_t set;
    IS(sched_yield(), 0);
    HOLDS(sched_getcpu() >= 0);
    IS(sched_getaffinity(0, sizeof set, &set), 0);
    HOLDS(CPU_COUNT(&set) >= 1);
    IS(sched_setaffinity(0, sizeof set, &set), 0);
    IS(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    IS(pthread_setaffinity_np(pthread_self(), sizeof set, &set), 0);
    FAILS(sched_getaffinity(0, 1, &set), EINVAL);
}
static int lowest(const cpu_set_t *set) {
    int cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, set)) cpu++;
    return cpu;
}
static void *tells_its_processors(void *set) { return (void *)(long)sched_getaffinity(0, sizeof(cpu_set_t), set); }
// What was asked for is what is told, by every name, and where the thread then is.
CASE(processors_that_were_asked_for, "sched_getcpu getcpu sched_getaffinity sched_setaffinity pthread_getaffinity_np pthread_setaffinity_np syscall pthread_create") {
    cpu_set_t all, one, told, of_other;
    IS(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        IS(sched_setaffinity(cpu % 2 ? 0 : gettid(), sizeof one, &one), 0);
        IS(sched_getaffinity(gettid(), sizeof told, &told), 0);
        HOLDS(CPU_EQUAL(&told, &one));
        IS(pthread_getaffinity_np(pthread_self(), sizeof told, &told), 0);
        HOLDS(CPU_EQUAL(&told, &one));
        CPU_ZERO(&told);
        HOLDS(syscall(SYS_sched_getaffinity, 0, sizeof told, &told) >= 8);
        HOLDS(CPU_EQUAL(&told, &one));
        unsigned here = -1, by_call = -1, node = -1;
        IS(sched_getcpu(), cpu);
        IS(getcpu(&here, &node), 0);
        IS(syscall(SYS_getcpu, &by_call, 0, 0), 0);
        HOLDS(here == (unsigned)cpu && by_call == (unsigned)cpu);
        // A new thread begins with it.
        CPU_ZERO(&of_other);
        IS(joined(start(tells_its_processors, &of_other)), 0);
        HOLDS(CPU_EQUAL(&of_other, &one));
    }
    IS(pthread_setaffinity_np(pthread_self(), sizeof all, &all), 0);
    IS(sched_getaffinity(getpid(), sizeof told, &told), 0);
    HOLDS(CPU_EQUAL(&told, &all));
    IS(syscall(SYS_sched_setaffinity, 0, sizeof all, &all), 0);
}
CASE(processors_of_another_thread, "pthread_getaffinity_np pthread_setaffinity_np pthread_create") {
    cpu_set_t all, one, told;
    IS(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(lowest(&all), &one);
    flag = 0;
    pthread_t thread = start(waits_for_flag, 0);
    IS(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    IS(pthread_getaffinity_np(thread, sizeof told, &told), 0);
    HOLDS(CPU_EQUAL(&told, &one));
    IS(pthread_getaffinity_np(pthread_self(), sizeof told, &told), 0);
    HOLDS(CPU_EQUAL(&told, &all));
    flag = 1;
    joined(thread);
    pthread_attr_t attributes;
    IS(pthread_attr_init(&attributes), 0);
    IS(pthread_attr_setaffinity_np(&attributes, sizeof one, &one), 0);
    IS(pthread_create(&thread, &attributes, tells_its_processors, &told), 0);
    joined(thread);
    HOLDS(CPU_EQUAL(&told, &one));
    IS(pthread_attr_destroy(&attributes), 0);
}
CASE(processors_that_nobody_has, "sched_getaffinity sched_setaffinity pthread_getaffinity_np pthread_setaffinity_np syscall pthread_create") {
    cpu_set_t all, none, told;
    IS(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&none);
    FAILS(sched_setaffinity(0, sizeof none, &none), EINVAL);
    IS(pthread_setaffinity_np(pthread_self(), sizeof none, &none), EINVAL);
    FAILS(sched_setaffinity(0, 0, &all), EINVAL);
    FAILS(syscall(SYS_sched_setaffinity, 0, sizeof none, &none), EINVAL);
    // One that there is not, on machines of today.
    CPU_SET(CPU_SETSIZE - 1, &none);
    FAILS(sched_setaffinity(0, sizeof none, &none), EINVAL);
    IS(pthread_setaffinity_np(pthread_self(), sizeof none, &none), EINVAL);
    pthread_attr_t attributes;
    pthread_t thread;
    IS(pthread_attr_init(&attributes), 0);
    IS(pthread_attr_setaffinity_np(&attributes, sizeof none, &none), 0);
    IS(pthread_create(&thread, &attributes, does_nothing, 0), EINVAL);
    IS(pthread_attr_destroy(&attributes), 0);
    // Nobody has these numbers.
    FAILS(sched_setaffinity(-1, sizeof all, &all), ESRCH);
    FAILS(sched_getaffinity(-1, sizeof told, &told), ESRCH);
    FAILS(sched_setaffinity(0x3fffffff, sizeof all, &all), ESRCH);
    // The kernel tells whole words only.
    memset(&told, 7, sizeof told);
    FAILS(sched_getaffinity(0, 1, &told), EINVAL);
    FAILS(sched_getaffinity(0, 12, &told), EINVAL);
    IS(pthread_getaffinity_np(pthread_self(), 4, &told), EINVAL);
    FAILS(syscall(SYS_sched_getaffinity, 0, 4, &told), EINVAL);
    IS(((char *)&told)[0], 7);
    IS(sched_getaffinity(0, sizeof told, &told), 0);
    HOLDS(CPU_EQUAL(&told, &all));
}
static int visits(struct dl_phdr_info *info, size_t size, void *count) { return ++*(int *)count, 0; }
CASE(modules, "dl_iterate_phdr dlopen") {
    int count = 0;
    IS(dl_iterate_phdr(visits, &count), 0);
    HOLDS(count > 1);
    void *dlopen(const char *, int);
    HOLDS(dlopen("no such library", 1) == 0);
}
