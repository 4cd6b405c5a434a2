// Known bugs in C and their correct twins. Everything racy is cut by calls that are steps, so that no instrumentation is
// needed.
#include "zoo.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, c = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

#define LOCK(mutex) pthread_mutex_lock(&mutex)
#define UNLOCK(mutex) pthread_mutex_unlock(&mutex)

typedef void *(*routine)(void *);

static void together(int count, routine *routines) {
    pthread_t threads[4];
    for (long i = 0; i < count; i++) pthread_create(&threads[i], 0, routines[i], (void *)i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], 0);
}
#define TOGETHER(...) together(sizeof((routine[]){__VA_ARGS__}) / sizeof(routine), (routine[]){__VA_ARGS__})

// Depth 1: the user may come before the maker.
static int *object;
static void *makes(void *u) {
    LOCK(a);
    static int it;
    object = &it;
    UNLOCK(a);
    if (fixed) pthread_cond_broadcast(&ready);
    return u;
}
static void *uses(void *u) {
    LOCK(a);
    while (fixed && !object) pthread_cond_wait(&ready, &a);
    if (!object) bug = 1;
    UNLOCK(a);
    return u;
}
static void order(void) { TOGETHER(makes, uses); }

// Depth 2: the balance is read and written under the lock, but not at once.
static int balance = 10;
static void *withdraws(void *u) {
    LOCK(a);
    int seen = balance;
    if (!fixed) {
        UNLOCK(a);
        LOCK(a);
    }
    balance = seen - 1;
    UNLOCK(a);
    return u;
}
static void atomicity(void) {
    TOGETHER(withdraws, withdraws);
    bug = balance != 8;
}

// Depth 2.
static void *a_then_b(void *u) { LOCK(a); LOCK(b); UNLOCK(b); UNLOCK(a); return u; }
static void *b_then_a(void *u) {
    if (fixed) return a_then_b(u);
    LOCK(b); LOCK(a); UNLOCK(a); UNLOCK(b);
    return u;
}
static void two_locks(void) { TOGETHER(a_then_b, b_then_a); }

// Depth 3: three locks in a circle.
static void *b_then_c(void *u) { LOCK(b); LOCK(c); UNLOCK(c); UNLOCK(b); return u; }
static void *c_then_a(void *u) {
    if (fixed) { LOCK(a); LOCK(c); } else { LOCK(c); LOCK(a); }
    UNLOCK(a); UNLOCK(c);
    return u;
}
static void three_locks(void) { TOGETHER(a_then_b, b_then_c, c_then_a); }

// Depth 2: the flag is looked at before the lock is taken.
static int flag;
static void *sleeps_on_flag(void *u) {
    if (fixed) {
        LOCK(a);
        while (!flag) pthread_cond_wait(&ready, &a);
    } else if (!__atomic_load_n(&flag, __ATOMIC_SEQ_CST)) {
        LOCK(a);
        pthread_cond_wait(&ready, &a);
    } else {
        LOCK(a);
    }
    UNLOCK(a);
    return u;
}
static void *sets_flag(void *u) {
    LOCK(a);
    flag = 1;
    pthread_cond_signal(&ready);
    UNLOCK(a);
    return u;
}
static void lost_wake_up(void) { TOGETHER(sleeps_on_flag, sets_flag); }

// Depth 1: one signal for two waiters.
static void *waits_for_flag(void *u) {
    LOCK(a);
    while (!flag) pthread_cond_wait(&ready, &a);
    UNLOCK(a);
    return u;
}
static void *signals_once(void *u) {
    LOCK(a);
    flag = 1;
    if (fixed) pthread_cond_broadcast(&ready); else pthread_cond_signal(&ready);
    UNLOCK(a);
    return u;
}
static void missed_signal(void) { TOGETHER(waits_for_flag, waits_for_flag, signals_once); }

// Depth 3: a stack whose pop compares the head only; the head comes back with another successor.
struct node { struct node *next; int used; };
static struct node nodes[3], *head;
static unsigned version;
static int replace_head(struct node *old, unsigned at, struct node *new) {
    LOCK(a);
    int same = head == old && (!fixed || version == at);
    if (same) { head = new; version++; }
    UNLOCK(a);
    return same;
}
static struct node *pop(void) {
    for (;;) {
        LOCK(a);
        struct node *top = head;
        unsigned at = version;
        UNLOCK(a);
        if (!top) return 0;
        struct node *next = top->next;
        if (replace_head(top, at, next)) {
            if (top->used) bug = 1;
            top->used = 1;
            return top;
        }
    }
}
static void push(struct node *node) {
    node->used = 0;
    for (;;) {
        LOCK(a);
        node->next = head;
        unsigned at = version;
        UNLOCK(a);
        if (replace_head(node->next, at, node)) return;
    }
}
static void *pops(void *u) { pop(); pop(); return u; }
static void *pops_and_pushes_back(void *u) {
    struct node *first = pop();
    struct node *second = pop();
    if (first) push(first);
    (void)second;
    return u;
}
static void aba(void) {
    nodes[0].next = &nodes[1];
    nodes[1].next = &nodes[2];
    head = &nodes[0];
    TOGETHER(pops, pops_and_pushes_back);
}

// Depth 2: the pointer is published before the object is complete.
static struct { int complete; } instance, *published;
static void *gets_instance(void *u) {
    if (!__atomic_load_n(&published, __ATOMIC_SEQ_CST)) {
        LOCK(a);
        if (!published) {
            if (!fixed) __atomic_store_n(&published, &instance, __ATOMIC_SEQ_CST);
            LOCK(b);
            instance.complete = 1;
            UNLOCK(b);
            __atomic_store_n(&published, &instance, __ATOMIC_SEQ_CST);
        }
        UNLOCK(a);
    }
    if (!published->complete) bug = 1;
    return u;
}
static void double_checked(void) { TOGETHER(gets_instance, gets_instance); }

// Depth 3 for three philosophers.
static pthread_mutex_t forks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *dines(void *seat) {
    long left = (long)seat, right = (left + 1) % 3;
    if (fixed && left > right) { left = 0; right = 2; }
    pthread_mutex_lock(&forks[left]);
    pthread_mutex_lock(&forks[right]);
    pthread_mutex_unlock(&forks[right]);
    pthread_mutex_unlock(&forks[left]);
    return 0;
}
static void philosophers(void) { TOGETHER(dines, dines, dines); }

// Depth 2: the writer gives up after three tries while readers come and go.
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static int written;
static void *reads(void *u) {
    for (int i = 0; i < 2; i++) {
        pthread_rwlock_rdlock(&shared);
        sched_yield();
        pthread_rwlock_unlock(&shared);
    }
    return u;
}
static void *writes(void *u) {
    if (fixed) {
        pthread_rwlock_wrlock(&shared);
        written = 1;
        pthread_rwlock_unlock(&shared);
        return u;
    }
    for (int i = 0; i < 3 && !written; i++)
        if (pthread_rwlock_trywrlock(&shared) == 0) {
            written = 1;
            pthread_rwlock_unlock(&shared);
        }
    return u;
}
static void writer_starves(void) {
    TOGETHER(reads, reads, writes);
    bug = !written;
}

// Depth 1: the barrier counts two, three come; the third waits for ever.
static pthread_barrier_t gate;
static void *meets(void *u) { pthread_barrier_wait(&gate); return u; }
static void *comes_by_chance(void *u) {
    // It only goes to the gate when it came first.
    LOCK(a);
    int first = !flag;
    flag = 1;
    UNLOCK(a);
    if (!fixed && first) pthread_barrier_wait(&gate);
    return u;
}
static void *comes_later(void *u) { LOCK(a); flag = 1; UNLOCK(a); return meets(u); }
static void barrier_misuse(void) {
    pthread_barrier_init(&gate, 0, 2);
    TOGETHER(meets, comes_later, comes_by_chance);
}

// Depth 2: the semaphore should be 1.
static sem_t permits;
static int inside;
static void *enters(void *u) {
    sem_wait(&permits);
    LOCK(a);
    if (++inside > 1) bug = 1;
    UNLOCK(a);
    LOCK(a);
    inside--;
    UNLOCK(a);
    sem_post(&permits);
    return u;
}
static void semaphore_misuse(void) {
    sem_init(&permits, 0, fixed ? 1 : 2);
    TOGETHER(enters, enters);
}

// Depth 2: a home-made once.
static int initialisations;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void initialise(void) { LOCK(b); initialisations++; UNLOCK(b); }
static void *initialises(void *u) {
    if (fixed) {
        pthread_once(&once, initialise);
        return u;
    }
    LOCK(a);
    int done = flag;
    UNLOCK(a);
    if (!done) {
        initialise();
        LOCK(a);
        flag = 1;
        UNLOCK(a);
    }
    return u;
}
static void once_misuse(void) {
    TOGETHER(initialises, initialises);
    bug = initialisations != 1;
}

// Depth 2: woken, but another was quicker.
static int items;
static void *takes_item(void *u) {
    LOCK(a);
    if (fixed) while (!items) pthread_cond_wait(&ready, &a);
    else if (!items) pthread_cond_wait(&ready, &a);
    if (items == 0) bug = 1; else items--;
    UNLOCK(a);
    return u;
}
static void *puts_items(void *u) {
    for (int i = 0; i < 2; i++) {
        LOCK(a);
        items++;
        pthread_cond_broadcast(&ready);
        UNLOCK(a);
    }
    return u;
}
static void no_loop(void) { TOGETHER(takes_item, takes_item, puts_items); }

// Depth 1: the worker is detached in spirit: its result is freed before it is written.
static int alive = 1;
static void *writes_result(void *u) {
    LOCK(a);
    if (!alive) bug = 1;
    UNLOCK(a);
    return u;
}
static void use_after_join(void) {
    pthread_t worker, helper;
    pthread_create(&helper, 0, writes_result, 0);
    pthread_create(&worker, 0, writes_result, 0);
    pthread_join(worker, 0);
    if (fixed) pthread_join(helper, 0);
    LOCK(a);
    alive = 0;
    UNLOCK(a);
    if (!fixed) pthread_join(helper, 0);
}

// Depth 2: the test for a free slot and the use of it are two steps.
static int queued;
static void *produces(void *u) {
    for (int i = 0; i < 2; i++) {
        LOCK(a);
        while (fixed && queued == 2) pthread_cond_wait(&ready, &a);
        int room = queued < 2;
        if (!fixed) {
            UNLOCK(a);
            LOCK(a);
        }
        if (room && ++queued > 2) bug = 1;
        UNLOCK(a);
    }
    return u;
}
static void *consumes(void *u) {
    for (int taken = 0; fixed && taken < 4;) {
        LOCK(a);
        if (queued > 0) {
            queued--;
            taken++;
            pthread_cond_broadcast(&ready);
        }
        UNLOCK(a);
        sched_yield();
    }
    return u;
}
static void overrun(void) { TOGETHER(produces, produces, consumes); }

// As the program was loaded.
static void reset(void) {
    a = b = c = forks[0] = forks[1] = forks[2] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    ready = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    shared = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
    once = (pthread_once_t)PTHREAD_ONCE_INIT;
    object = 0;
    published = 0;
    instance.complete = 0;
    head = 0;
    memset(nodes, 0, sizeof nodes);
    balance = 10;
    alive = 1;
    version = 0;
    flag = written = inside = initialisations = items = queued = 0;
}

int main(int argc, char **argv) {
    static const struct animal zoo[] = {
        {"order", order}, {"atomicity", atomicity}, {"two_locks", two_locks}, {"three_locks", three_locks},
        {"lost_wake_up", lost_wake_up}, {"missed_signal", missed_signal}, {"aba", aba},
        {"double_checked", double_checked}, {"philosophers", philosophers}, {"writer_starves", writer_starves},
        {"barrier_misuse", barrier_misuse}, {"semaphore_misuse", semaphore_misuse}, {"once_misuse", once_misuse},
        {"no_loop", no_loop}, {"use_after_join", use_after_join}, {"overrun", overrun},
    };
    return visit(zoo, sizeof zoo / sizeof *zoo, reset, argc, argv);
}
