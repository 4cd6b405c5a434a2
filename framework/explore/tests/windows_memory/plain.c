/* Accesses to ordinary variables, ordered in some way or not at all. The first argument says how; the exit status is 0 if all
   went well. What is POSIX runs on every system. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#endif

static int sum;
static int ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void add_plainly(void) {
    int before = sum;
    sum = before + 1;
}

static int run_two(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return sum;
}

static void *unprotected(void *nothing) {
    add_plainly();
    return nothing;
}

static void *with_mutex(void *nothing) {
    pthread_mutex_lock(&mutex);
    add_plainly();
    pthread_mutex_unlock(&mutex);
    return nothing;
}

static void *publishes(void *nothing) {
    sum = 2;
    __atomic_exchange_n(&ready, 1, __ATOMIC_SEQ_CST);
    return nothing;
}

static void *looks(void *nothing) {
    if (__atomic_fetch_add(&ready, 0, __ATOMIC_SEQ_CST) && sum != 2) {
        abort();
    }
    return nothing;
}

/* Blocks of the heap and stacks that others had before. */
static void *uses_memory_again(void *nothing) {
    for (int turn = 0; turn < 3; turn++) {
        int *mine = calloc(16, sizeof *mine);
        for (int place = 0; place < 16; place++) {
            mine[place] += turn;
        }
        char *copy = strdup("some text");
        copy[turn] = '-';
        free(copy);
        free(mine);
    }
    int *grows = NULL;
    for (int length = 1; length < 20; length++) {
        grows = realloc(grows, length * 16 * sizeof *grows);
        grows[length * 16 - 1] = length;
    }
    free(grows);
    return nothing;
}

static void *computes(void *nothing) {
    int *mine = malloc(sizeof *mine);
    *(volatile int *)mine = 0;
    for (int turn = 0; turn < 200; turn++) {
        *(volatile int *)mine += 1;
    }
    free(mine);
    return nothing;
}

__attribute__((noinline)) static void fill(int *mine) {
    for (int turn = 0; turn < 200; turn++) {
        mine[turn] = turn;
        mine[turn] += mine[turn / 2];
    }
}

static void *works_on_its_stack(void *nothing) {
    int mine[200];
    fill(mine);
    return nothing;
}

static void *nowhere(void *nothing) {
    *(volatile int *)(size_t)(sum * 8) = sum;
    return nothing;
}

static void *sets(void *nothing) {
    sum = 2;
    return nothing;
}

static void check(void) {
    if (sum != 2) {
        abort();
    }
}

static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static sem_t semaphore;

static void *with_another_mutex(void *nothing) {
    pthread_mutex_lock(&other_mutex);
    add_plainly();
    pthread_mutex_unlock(&other_mutex);
    return nothing;
}

static void *signals(void *nothing) {
    sum = 2;
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return nothing;
}

static void *awaits_signal(void *nothing) {
    pthread_mutex_lock(&mutex);
    while (!ready) {
        pthread_cond_wait(&condition, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    check();
    return nothing;
}

static void *posts(void *nothing) {
    sum = 2;
    sem_post(&semaphore);
    return nothing;
}

static void *awaits_post(void *nothing) {
    sem_wait(&semaphore);
    check();
    return nothing;
}

static void *as_writer(void *nothing) {
    pthread_rwlock_wrlock(&rwlock);
    sum = 2;
    pthread_rwlock_unlock(&rwlock);
    return nothing;
}

static void *as_reader(void *nothing) {
    pthread_rwlock_rdlock(&rwlock);
    if (sum == 1) {
        abort();
    }
    pthread_rwlock_unlock(&rwlock);
    return nothing;
}

static void *comes_first(void *nothing) {
    sum = 2;
    pthread_barrier_wait(&barrier);
    return nothing;
}

static void *comes_later(void *nothing) {
    pthread_barrier_wait(&barrier);
    check();
    return nothing;
}

static void initialise(void) {
    sum = 2;
}

static void *needs_it(void *nothing) {
    pthread_once(&once, initialise);
    check();
    return nothing;
}

static void *with_spin(void *nothing) {
    pthread_spin_lock(&spin);
    add_plainly();
    pthread_spin_unlock(&spin);
    return nothing;
}

#ifdef _WIN32
static CRITICAL_SECTION section;
static SRWLOCK slim = SRWLOCK_INIT;
static CONDITION_VARIABLE woken = CONDITION_VARIABLE_INIT;
static INIT_ONCE init_once = INIT_ONCE_STATIC_INIT;
static HANDLE event, handle, counter;

static void prepare(void) {
    InitializeCriticalSection(&section);
    event = CreateEventW(NULL, FALSE, FALSE, NULL);
    handle = CreateMutexW(NULL, FALSE, NULL);
    counter = CreateSemaphoreW(NULL, 0, 4, NULL);
}

static void *with_section(void *nothing) {
    EnterCriticalSection(&section);
    add_plainly();
    LeaveCriticalSection(&section);
    return nothing;
}

static void *with_slim(void *nothing) {
    AcquireSRWLockExclusive(&slim);
    add_plainly();
    ReleaseSRWLockExclusive(&slim);
    return nothing;
}

static void *sets_event(void *nothing) {
    sum = 2;
    SetEvent(event);
    return nothing;
}

static void *awaits_event(void *nothing) {
    WaitForSingleObject(event, INFINITE);
    check();
    return nothing;
}

static void *with_handle(void *nothing) {
    WaitForSingleObject(handle, INFINITE);
    add_plainly();
    ReleaseMutex(handle);
    return nothing;
}

static void *releases(void *nothing) {
    sum = 2;
    ReleaseSemaphore(counter, 1, NULL);
    return nothing;
}

static void *awaits_release(void *nothing) {
    HANDLE both[2] = {handle, counter};
    WaitForMultipleObjects(2, both, TRUE, INFINITE);
    check();
    ReleaseMutex(handle);
    return nothing;
}

static void *wakes(void *nothing) {
    sum = 2;
    AcquireSRWLockExclusive(&slim);
    ready = 1;
    ReleaseSRWLockExclusive(&slim);
    WakeAllConditionVariable(&woken);
    return nothing;
}

static void *awaits_wake(void *nothing) {
    AcquireSRWLockShared(&slim);
    while (!ready) {
        SleepConditionVariableSRW(&woken, &slim, INFINITE, CONDITION_VARIABLE_LOCKMODE_SHARED);
    }
    ReleaseSRWLockShared(&slim);
    check();
    return nothing;
}

static void *wakes_address(void *nothing) {
    sum = 2;
    __atomic_exchange_n(&ready, 1, __ATOMIC_SEQ_CST);
    WakeByAddressAll(&ready);
    return nothing;
}

static void *awaits_address(void *nothing) {
    int not_yet = 0;
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        WaitOnAddress(&ready, &not_yet, sizeof ready, INFINITE);
    }
    check();
    return nothing;
}

static BOOL CALLBACK initialise_once(PINIT_ONCE which, void *parameter, void **context) {
    (void)which, (void)parameter, (void)context;
    sum = 2;
    return TRUE;
}

static void *needs_it_once(void *nothing) {
    InitOnceExecuteOnce(&init_once, initialise_once, NULL, NULL);
    check();
    return nothing;
}

static DWORD CALLBACK adds(void *nothing) {
    (void)nothing;
    add_plainly();
    return 0;
}

/* One after the other: the first has ended when the second begins. */
static void *several(void *nothing) {
    for (int turn = 0; turn < 2; turn++) {
        HANDLE all[2] = {CreateThread(NULL, 0, adds, NULL, 0, NULL), NULL};
        WaitForMultipleObjects(1, all, TRUE, INFINITE);
        WaitForSingleObject(all[0], INFINITE);
        CloseHandle(all[0]);
    }
    check();
    return nothing;
}

static void *several_more(void *nothing) {
    return nothing;
}
#endif

typedef void *Work(void *);

struct way {
    const char *name;
    Work *one, *other;
    int result;
};

static const struct way ways[] = {
    {"plain", unprotected, unprotected, 2},
    {"two-locks", with_mutex, with_another_mutex, 2},
    {"mutex", with_mutex, with_mutex, 2},
    {"published", publishes, looks, 2},
    {"condition", signals, awaits_signal, 2},
    {"semaphore", posts, awaits_post, 2},
    {"rwlock", as_writer, as_reader, 2},
    {"barrier", comes_first, comes_later, 2},
    {"once", needs_it, needs_it, 2},
    {"spin", with_spin, with_spin, 2},
    {"reused", uses_memory_again, uses_memory_again, 0},
    {"local", computes, computes, 0},
    {"stack", works_on_its_stack, works_on_its_stack, 0},
    {"fault", nowhere, sets, 2},
#ifdef _WIN32
    {"section", with_section, with_section, 2},
    {"slim", with_slim, with_slim, 2},
    {"event", sets_event, awaits_event, 2},
    {"win32-mutex", with_handle, with_handle, 2},
    {"win32-semaphore", releases, awaits_release, 2},
    {"win32-condition", wakes, awaits_wake, 2},
    {"address", wakes_address, awaits_address, 2},
    {"init-once", needs_it_once, needs_it_once, 2},
    {"several", several, several_more, 2},
#endif
};

int main(int count, char **arguments) {
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 0);
#ifdef _WIN32
    prepare();
#endif
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        if (count > 1 && !strcmp(arguments[1], ways[way].name)) {
            return run_two(ways[way].one, ways[way].other) != ways[way].result;
        }
    }
    return 9;
}
