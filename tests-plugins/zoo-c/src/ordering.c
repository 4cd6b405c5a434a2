/* The bugs that the literature explains depth with: figures 1 to 5 of "A Randomized Scheduler with Probabilistic
 * Guarantees of Finding Bugs", and threads of very different length. */
#define _GNU_SOURCE
#include "zoo.h"

typedef struct object {
  volatile int value;
} object;

typedef struct {
  run *run;
  object it;
  object *volatile pointer;
  shared said, word, other_word, left_began, left_ended, right_began, right_ended, at_the_end;
  lock a, b;
  pthread_cond_t changed;
} scene;

#define SCENE {.run = run, .a = PTHREAD_MUTEX_INITIALIZER, .b = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

/* order, figure 1(a). d = 1: use -> make. Crashes.
 * @order: use -> make */
static void *order_makes(void *state) {
  scene *s = state;
  pass_time(&s->word, 5);
  take(&s->a);
  s->pointer = &s->it; /* @make */
  pthread_cond_signal(&s->changed);
  give(&s->a);
  return NULL;
}
static void *order_uses(void *state) {
  scene *s = state;
  pass_time(&s->other_word, 5);
  take(&s->a);
  while (s->run->fixed && !s->pointer) pthread_cond_wait(&s->changed, &s->a);
  give(&s->a);
  s->pointer->value = 1; /* @use */
  return NULL;
}
void order(run *run) {
  scene s = SCENE;
  both(order_makes, order_uses, &s);
}

/* order-event, figure 3. d = 1: use -> make; the maker has to be preempted behind its signal.
 * @order-event: use -> make */
static void *event_makes(void *state) {
  scene *s = state;
  pass_time(&s->word, 5);
  if (s->run->fixed) s->pointer = &s->it;
  take(&s->a);
  s->said = 1;
  pthread_cond_signal(&s->changed);
  give(&s->a);
  s->pointer = &s->it; /* @make */
  return NULL;
}
static void *event_uses(void *state) {
  scene *s = state;
  take(&s->a);
  while (!s->said) pthread_cond_wait(&s->changed, &s->a);
  give(&s->a);
  if (!s->pointer) bug(s->run, "the event came before the object"); /* @use */
  return NULL;
}
void order_event(run *run) {
  scene s = SCENE;
  both(event_makes, event_uses, &s);
}

/* order-branch, figure 4. d = 2: flag -> look at the flag, use -> make.
 * @order-branch: flag -> look, use -> make */
static void *branch_makes(void *state) {
  scene *s = state;
  pass_time(&s->word, 10);
  if (s->run->fixed) s->pointer = &s->it;
  s->said = 1;         /* @flag */
  s->pointer = &s->it; /* @make */
  return NULL;
}
static void *branch_uses(void *state) {
  scene *s = state;
  pass_time(&s->other_word, 10);
  if (s->said && !s->pointer) bug(s->run, "the flag was set before the object was there"); /* @look @use */
  return NULL;
}
void order_branch(run *run) {
  scene s = SCENE;
  both(branch_makes, branch_uses, &s);
}

/* left-first and right-first, figure 5: one program, two bugs. d = 1 each: the last step of one thread -> the first of
 * the other. A coin at every step finds either once in 2^length runs. The twin waits for both to have begun.
 * @left-first: left-ends -> right-looks
 * @right-first: right-ends -> left-looks */
static void meet(scene *s) {
  if (!s->run->fixed) return;
  take(&s->a);
  s->said++;
  pthread_cond_broadcast(&s->changed);
  while (s->said < 2) pthread_cond_wait(&s->changed, &s->a);
  give(&s->a);
}
static void *left(void *state) {
  scene *s = state;
  if (s->right_ended) s->right_began = 2; /* @left-looks */
  meet(s);
  pass_time(&s->word, s->run->size);
  s->left_ended = 1; /* @left-ends */
  return NULL;
}
static void *right(void *state) {
  scene *s = state;
  if (s->left_ended) s->left_began = 2; /* @right-looks */
  meet(s);
  pass_time(&s->other_word, s->run->size);
  s->right_ended = 1; /* @right-ends */
  return NULL;
}
void left_first(run *run) {
  scene s = SCENE;
  both(left, right, &s);
  if (s.left_began == 2) bug(run, "the left thread had ended before the right one began");
}
void right_first(run *run) {
  scene s = SCENE;
  both(left, right, &s);
  if (s.right_began == 2) bug(run, "the right thread had ended before the left one began");
}

/* atomicity, figure 1(b). d = 2: look -> take away, take away -> use. Crashes.
 * @atomicity: look -> take-away, take-away -> use */
static void *atomicity_uses(void *state) {
  scene *s = state;
  pass_time(&s->word, 10);
  if (s->run->fixed) take(&s->a);
  if (s->pointer) s->pointer->value = 1; /* @look @use */
  if (s->run->fixed) give(&s->a);
  return NULL;
}
static void *atomicity_takes_away(void *state) {
  scene *s = state;
  pass_time(&s->other_word, 10);
  if (s->run->fixed) take(&s->a);
  s->pointer = NULL; /* @take-away */
  if (s->run->fixed) give(&s->a);
  return NULL;
}
void atomicity(run *run) {
  scene s = SCENE;
  s.pointer = &s.it;
  both(atomicity_uses, atomicity_takes_away, &s);
}

/* deadlock, figure 1(c). d = 2: left takes a -> right takes a, right takes b -> left takes b.
 * @deadlock: left-a -> right-a, right-b -> left-b */
static void *a_then_b(void *state) {
  scene *s = state;
  pass_time(&s->word, 5);
  take(&s->a); /* @left-a */
  take(&s->b); /* @left-b */
  give(&s->b);
  give(&s->a);
  return NULL;
}
static void *b_then_a(void *state) {
  scene *s = state;
  if (s->run->fixed) return a_then_b(state);
  pass_time(&s->other_word, 5);
  take(&s->b); /* @right-b */
  take(&s->a); /* @right-a */
  give(&s->a);
  give(&s->b);
  return NULL;
}
void deadlock(run *run) {
  scene s = SCENE;
  both(a_then_b, b_then_a, &s);
}

/* decompress, figure 2: consumers decompress blocks; the main thread leaves when all are written, and frees the queue.
 * d = 2: free -> the last consumer gives the lock, that -> exit. What comes behind exit cannot happen any more.
 * @decompress: free -> use, use -> exit */
typedef struct {
  run *run;
  long left, written, blocks;
  lock queue, output;
  pthread_cond_t complete;
  shared freed, exited, sum;
} archive;

static void *consumer(void *state) {
  archive *a = state;
  for (;;) {
    take(&a->queue);
    long mine = a->left > 0 ? a->left-- : 0;
    if (a->freed && !a->exited) bug(a->run, "the lock of a freed queue is used"); /* @use */
    give(&a->queue);
    if (mine == 0) return NULL;
    pass_time(&a->sum, 3);
    take(&a->output);
    if (++a->written == a->blocks) pthread_cond_signal(&a->complete);
    give(&a->output);
  }
}
void decompress(run *run) {
  archive a = {.run = run, .left = run->size, .blocks = run->size};
  a.queue = a.output = (lock)PTHREAD_MUTEX_INITIALIZER;
  a.complete = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_t consumers[3];
  for (int i = 0; i < 3; i++) consumers[i] = begin(consumer, &a);
  take(&a.output);
  while (a.written < a.blocks) pthread_cond_wait(&a.complete, &a.output);
  give(&a.output);
  if (run->fixed) {
    for (int i = 0; i < 3; i++) end(consumers[i]);
    return;
  }
  a.freed = 1; /* @free */
  pass_time(&a.sum, 3);
  a.exited = 1; /* @exit */
  for (int i = 0; i < 3; i++) end(consumers[i]);
}

/* ends-meet. d = 2: the long thread comes to its end -> the short one looks, that -> the long one has ended. A coin at
 * every step lets the short thread end long before.
 * @ends-meet: ending -> look, look -> ended */
static void *long_one(void *state) {
  scene *s = state;
  pass_time(&s->word, s->run->size);
  s->at_the_end = 1;
  if (s->run->fixed) take(&s->a);
  s->left_began = 1; /* @ending */
  s->left_began = 0; /* @ended */
  if (s->run->fixed) give(&s->a);
  return NULL;
}
static void *short_one(void *state) {
  scene *s = state;
  pass_time(&s->other_word, 3);
  if (s->run->fixed) take(&s->a);
  if (s->left_began) bug(s->run, "looked while the other was ending"); /* @look */
  if (s->run->fixed) give(&s->a);
  return NULL;
}
void ends_meet(run *run) {
  scene s = SCENE;
  both(long_one, short_one, &s);
}
