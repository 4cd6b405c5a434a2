/* Numeric kernels on two threads that do not wait for each other where they should, in the style of the three SPLASH-2
 * programs of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs". The main thread is one of the two.
 * The arithmetic is real, so that the steps are those of a real kernel. */
#define _GNU_SOURCE
#include "zoo.h"

#include <math.h>

enum { POINTS = 32, ORDER = 12, MOST_BODIES = 64 };

typedef struct {
  run *run;
  lock guard;
  pthread_cond_t changed;
  int arrived, round;
  shared finished[2];
  double re[POINTS], im[POINTS], matrix[ORDER][ORDER];
  int next, done;
} kernel;

#define KERNEL {.run = run, .guard = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}

static void barrier(kernel *k) {
  take(&k->guard);
  int round = k->round;
  if (++k->arrived == 2) {
    k->arrived = 0;
    k->round++;
    pthread_cond_broadcast(&k->changed);
  }
  while (k->round == round) pthread_cond_wait(&k->changed, &k->guard);
  give(&k->guard);
}

/* The two kernels below end in the same way: the main thread uses what the other has to have finished. */
static void *on_two_threads(kernel *k, thread *other, void (*part)(kernel *, int)) {
  pthread_t thread = begin(other, k);
  part(k, 0);
  if (k->run->fixed) barrier(k);
  if (!k->finished[1]) bug(k->run, "the other thread's part is used before it is finished"); /* @look */
  end(thread);
  return NULL;
}
static void finish_second(kernel *k) {
  k->finished[1] = 1; /* @finish */
  if (k->run->fixed) barrier(k);
}

/* fft: stages of a transform, a barrier behind each but the last. d = 1: the main thread looks -> the other finishes.
 * @fft: look -> finish */
static void fft_part(kernel *k, int who) {
  for (int half = 1; half < POINTS; half *= 2) {
    for (int pair = who; pair < POINTS / 2; pair += 2) {
      int low = pair / half * 2 * half + pair % half, high = low + half;
      double angle = -3.14159265358979 * (pair % half) / half, c = cos(angle), s = sin(angle);
      take(&k->guard);
      double re = k->re[high] * c - k->im[high] * s, im = k->re[high] * s + k->im[high] * c;
      k->re[high] = k->re[low] - re;
      k->im[high] = k->im[low] - im;
      k->re[low] += re;
      k->im[low] += im;
      give(&k->guard);
    }
    if (half * 2 < POINTS) barrier(k);
  }
}
static void *fft_other(void *state) {
  fft_part(state, 1);
  finish_second(state);
  return NULL;
}
void fft(run *run) {
  kernel k = KERNEL;
  for (int i = 0; i < POINTS; i++) k.re[i] = i % 7;
  on_two_threads(&k, fft_other, fft_part);
}

/* lu: a decomposition whose rows are dealt out one by one, a barrier behind each column but the last. d = 1: the main
 * thread looks -> the other finishes.
 * @lu: look -> finish */
static void lu_part(kernel *k, int who) {
  (void)who;
  for (int column = 0; column < ORDER - 1; column++) {
    for (;;) {
      take(&k->guard);
      int row = column + 1 + k->next;
      if (row < ORDER) k->next++;
      give(&k->guard);
      if (row >= ORDER) break;
      double factor = k->matrix[row][column] / k->matrix[column][column];
      for (int i = column; i < ORDER; i++) k->matrix[row][i] -= factor * k->matrix[column][i];
    }
    if (column == ORDER - 2) break;
    barrier(k);
    take(&k->guard);
    if (++k->done == 2) k->done = k->next = 0;
    give(&k->guard);
    barrier(k);
  }
}
static void *lu_other(void *state) {
  lu_part(state, 1);
  finish_second(state);
  return NULL;
}
void lu(run *run) {
  kernel k = KERNEL;
  for (int i = 0; i < ORDER; i++)
    for (int j = 0; j < ORDER; j++) k.matrix[i][j] = i == j ? ORDER + 1 : (i * j) % 5;
  on_two_threads(&k, lu_other, lu_part);
}

/* barnes: two threads put bodies into a tree, then walk it. d = 1: the main thread walks -> the other puts its last body
 * in. The twin has a barrier in between.
 * @barnes: walk -> put */
typedef struct {
  kernel k;
  double place[MOST_BODIES];
  int low[MOST_BODIES], high[MOST_BODIES], root, count;
} tree;

static void put(tree *t, int body) {
  take(&t->k.guard); /* @put */
  int *link = &t->root;
  while (*link >= 0) link = t->place[body] < t->place[*link] ? &t->low[*link] : &t->high[*link];
  *link = body;
  t->count++;
  give(&t->k.guard);
}
static int bodies_below(const tree *t, int body) {
  return body < 0 ? 0 : 1 + bodies_below(t, t->low[body]) + bodies_below(t, t->high[body]);
}
static void *barnes_other(void *state) {
  tree *t = state;
  for (int body = 1; body < t->k.run->size; body += 2) put(t, body);
  if (t->k.run->fixed) barrier(&t->k);
  return NULL;
}
void barnes(run *run) {
  tree t = {.k = KERNEL, .root = -1};
  if (run->size > MOST_BODIES) run->size = MOST_BODIES;
  for (int body = 0; body < run->size; body++) {
    t.place[body] = fmod(body * 0.618034, 1.0);
    t.low[body] = t.high[body] = -1;
  }
  pthread_t other = begin(barnes_other, &t);
  for (int body = 0; body < run->size; body += 2) put(&t, body);
  if (run->fixed) barrier(&t.k);
  take(&t.k.guard); /* @walk */
  int seen = bodies_below(&t, t.root);
  give(&t.k.guard);
  if (seen != run->size) bug(run, "the tree was walked before it was built");
  end(other);
}
