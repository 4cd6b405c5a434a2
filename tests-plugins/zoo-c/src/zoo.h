/* What a program of the zoo is: one function that starts threads, joins them, and notices whether its bug showed.
 *
 * Each stands with its depth d, the least number of ordering constraints that make the bug appear, and with these
 * constraints. A constraint `a -> b` says that a happens before b. `fixed` makes the correct twin of the same program. The
 * lines that begin with the program's name say the same by place, for tests/zoo.rs: `use` is where `@use` stands. Of
 * several lines each says it in its own way.
 * Data that threads share without a lock is volatile: every access is a step of strict mode. */
#ifndef ZOO_H
#define ZOO_H

#include <pthread.h>
#include <stddef.h>

typedef struct run {
  int fixed;
  long size;                  /* of the program's own parameter */
  const char *_Atomic noticed; /* what went wrong, if something did */
} run;

typedef void program(run *run);

typedef volatile int shared;

typedef pthread_mutex_t lock;
typedef void *thread(void *state);

/* Notes that the bug showed; the first word stays. */
void bug(run *run, const char *what);

/* Threads, without ways to fail. */
pthread_t begin(thread *routine, void *state);
void end(pthread_t thread);
/* Runs both to their ends. */
void both(thread *first, thread *second, void *state);

static inline void take(lock *lock) { pthread_mutex_lock(lock); }
static inline void give(lock *lock) { pthread_mutex_unlock(lock); }

/* Work that has nothing to do with the bug. */
void pass_time(shared *word, long steps);

program order, order_event, order_branch, left_first, right_first, atomicity, deadlock, decompress, ends_meet;
program fft, lu, barnes;
program philosophers, wrong_lock, two_phases, circle;

#endif
