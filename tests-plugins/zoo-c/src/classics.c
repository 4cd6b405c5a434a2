/* Textbook programs: philosophers, locks that are not the same, locks in a circle, phases. */
#define _GNU_SOURCE
#include "zoo.h"

enum { MOST_SEATS = 16 };

typedef struct {
  run *run;
  lock forks[MOST_SEATS];
  long seats;
  shared next, word, other_word;
} table;

/* philosophers. d = number of seats: each takes the left fork -> the neighbour wants it. The twin's last one takes the
 * right fork first.
 * @philosophers: left -> right, left -> right, left -> right */
typedef struct {
  table *table;
  long number;
} seat;

static void *dines(void *state) {
  seat *seat = state;
  table *t = seat->table;
  long first = seat->number, second = (first + 1) % t->seats;
  if (t->run->fixed && second < first) {
    first = 0;
    second = seat->number;
  }
  take(&t->forks[first]);  /* @left */
  take(&t->forks[second]); /* @right */
  give(&t->forks[second]);
  give(&t->forks[first]);
  return NULL;
}
void philosophers(run *run) {
  table t = {.run = run, .seats = run->size < 2 ? 2 : run->size > MOST_SEATS ? MOST_SEATS : run->size};
  seat seats[MOST_SEATS];
  pthread_t threads[MOST_SEATS];
  for (long i = 0; i < t.seats; i++) {
    t.forks[i] = (lock)PTHREAD_MUTEX_INITIALIZER;
    seats[i] = (seat){&t, i};
  }
  for (long i = 0; i < t.seats; i++) threads[i] = begin(dines, &seats[i]);
  for (long i = 0; i < t.seats; i++) end(threads[i]);
}

typedef struct {
  run *run;
  lock one, two, three;
  shared sum, word, other_word, phase;
} pair;

#define PAIR {.run = run, .one = PTHREAD_MUTEX_INITIALIZER, .two = PTHREAD_MUTEX_INITIALIZER, .three = PTHREAD_MUTEX_INITIALIZER}

/* wrong-lock. d = 2: one reads -> the other writes, that -> the first writes; which is to say that each
 * reads before the other writes.
 * @wrong-lock: read -> write, write -> write
 * @wrong-lock: read -> write, read -> write */
static void add_under(pair *p, lock *lock) {
  for (int i = 0; i < 3; i++) {
    take(lock);
    int seen = p->sum; /* @read */
    p->sum = seen + 1; /* @write */
    give(lock);
  }
}
static void *adds_under_one(void *state) {
  pair *p = state;
  add_under(p, &p->one);
  return NULL;
}
static void *adds_under_two(void *state) {
  pair *p = state;
  add_under(p, p->run->fixed ? &p->one : &p->two);
  return NULL;
}
void wrong_lock(run *run) {
  pair p = PAIR;
  both(adds_under_one, adds_under_two, &p);
  if (p.sum != 6) bug(run, "a sum that two locks guard lost an update");
}

/* two-phases. d = 3: phase 1 -> first look, that -> phase 2, that -> second look.
 * @two-phases: one -> first, first -> two, two -> second */
static void *writes_phases(void *state) {
  pair *p = state;
  pass_time(&p->word, p->run->size);
  if (p->run->fixed) take(&p->one);
  p->phase = 1; /* @one */
  pass_time(&p->word, p->run->size);
  p->phase = 2; /* @two */
  if (p->run->fixed) give(&p->one);
  return NULL;
}
static void *reads_phases(void *state) {
  pair *p = state;
  pass_time(&p->other_word, p->run->size);
  if (p->run->fixed) take(&p->one);
  int first = p->phase;  /* @first */
  int second = p->phase; /* @second */
  if (p->run->fixed) give(&p->one);
  if (first == 1 && second == 2) bug(p->run, "a reader saw both phases");
  return NULL;
}
void two_phases(run *run) {
  pair p = PAIR;
  both(writes_phases, reads_phases, &p);
}

/* circle. d = 3: each of three takes its first lock -> the neighbour wants that lock.
 * @circle: takes -> wants, takes -> wants, takes -> wants */
static void both_locks(pair *p, lock *first, lock *second) {
  pass_time(&p->word, 3);
  take(first);  /* @takes */
  take(second); /* @wants */
  give(second);
  give(first);
}
static void *one_two(void *state) {
  pair *p = state;
  both_locks(p, &p->one, &p->two);
  return NULL;
}
static void *two_three(void *state) {
  pair *p = state;
  both_locks(p, &p->two, &p->three);
  return NULL;
}
static void *three_one(void *state) {
  pair *p = state;
  if (p->run->fixed) {
    both_locks(p, &p->one, &p->three);
  } else {
    both_locks(p, &p->three, &p->one);
  }
  return NULL;
}
void circle(run *run) {
  pair p = PAIR;
  pthread_t first = begin(one_two, &p), second = begin(two_three, &p), third = begin(three_one, &p);
  end(first);
  end(second);
  end(third);
}
