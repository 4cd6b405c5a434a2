/* The contract around the programs: every program is two tests, itself and its correct twin. */
#define _GNU_SOURCE
#include "zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waylay.h"

typedef struct animal {
  const char *name, *about;
  program *program;
  const char *parameter, *value, *meaning; /* NULL without a parameter */
} animal;

static const animal ANIMALS[] = {
    {"order", "uses an object before it is made", order, NULL, NULL, NULL},
    {"order-event", "says that an object is there before it is", order_event, NULL, NULL, NULL},
    {"order-branch", "sets a flag before the object that it stands for", order_branch, NULL, NULL, NULL},
    {"left-first", "fails when the left thread ends before the right one begins", left_first, "length", "30",
     "steps of each thread"},
    {"right-first", "fails when the right thread ends before the left one begins", right_first, "length", "30",
     "steps of each thread"},
    {"atomicity", "looks at a pointer, then uses it", atomicity, NULL, NULL, NULL},
    {"deadlock", "takes two locks in two orders", deadlock, NULL, NULL, NULL},
    {"decompress", "frees a queue while a consumer holds its lock", decompress, "blocks", "6", "blocks to decompress"},
    {"ends-meet", "fails when a short thread ends while a long one ends", ends_meet, "length", "300",
     "steps of the long thread"},
    {"fft", "does not wait for the other half of a transform", fft, NULL, NULL, NULL},
    {"lu", "does not wait for the other half of a decomposition", lu, NULL, NULL, NULL},
    {"barnes", "walks a tree that is still being built", barnes, "bodies", "24", "bodies in the tree"},
    {"philosophers", "each takes the left fork first", philosophers, "seats", "3", "philosophers"},
    {"wrong-lock", "guards one sum with two locks", wrong_lock, NULL, NULL, NULL},
    {"two-phases", "fails when a reader sees both phases of a writer", two_phases, "length", "10",
     "steps before and between"},
    {"circle", "takes three locks in a circle", circle, NULL, NULL, NULL},
};
enum { ANIMAL_COUNT = sizeof ANIMALS / sizeof ANIMALS[0], TEST_COUNT = 2 * ANIMAL_COUNT };

void bug(run *run, const char *what) {
  const char *none = NULL;
  __atomic_compare_exchange_n((const char **)&run->noticed, &none, what, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

pthread_t begin(thread *routine, void *state) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, state) != 0) abort();
  return thread;
}

void end(pthread_t thread) { pthread_join(thread, NULL); }

void both(thread *first, thread *second, void *state) {
  pthread_t one = begin(first, state), two = begin(second, state);
  end(one);
  end(two);
}

void pass_time(shared *word, long steps) {
  for (long i = 0; i < steps; i++) *word = (int)i;
}

typedef struct instance {
  waylay_instance instance; /* first: the host's pointer is ours */
  const waylay_services *services;
  const animal *animal;
  const waylay_distribution *size;
  int fixed;
} instance;

static int32_t test_main(waylay_instance *base, waylay_context *worker) {
  instance *self = (instance *)base;
  run run = {.fixed = self->fixed, .size = 0, .noticed = NULL};
  if (self->size) run.size = (long)self->services->draw_int(worker, self->size);
  self->animal->program(&run);
  if (!run.noticed) return WAYLAY_OK;
  waylay_fail(self->services, worker, run.noticed);
  return WAYLAY_FAILED;
}

static waylay_param_info params[ANIMAL_COUNT];
static const waylay_param_info *param_lists[ANIMAL_COUNT];
static char names[TEST_COUNT][32];
static waylay_test_info infos[TEST_COUNT];
static const waylay_test_info *info_pointers[TEST_COUNT];
static waylay_plugin_info plugin = {
    .size = sizeof plugin,
    .abi_version = WAYLAY_ABI_VERSION,
    .name = "zoo-c",
    .tests = info_pointers,
    .test_count = TEST_COUNT,
};

static void describe(void) {
  for (int i = 0; i < TEST_COUNT; i++) {
    const animal *animal = &ANIMALS[i / 2];
    snprintf(names[i], sizeof names[i], "%s%s", animal->name, i % 2 ? "-fixed" : "");
    infos[i].size = sizeof infos[i];
    infos[i].name = names[i];
    infos[i].about = i % 2 ? "the same, done right" : animal->about;
    if (animal->parameter) {
      params[i / 2] = (waylay_param_info){sizeof params[0], 0, animal->parameter, animal->value, animal->meaning};
      param_lists[i / 2] = &params[i / 2];
      infos[i].params = &param_lists[i / 2];
      infos[i].param_count = 1;
    }
    info_pointers[i] = &infos[i];
  }
}

const waylay_plugin_info *WaylayPlugin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, describe);
  return &plugin;
}

waylay_instance *CreateInstance(const waylay_create_args *args) {
  for (int i = 0; i < TEST_COUNT; i++) {
    if (strcmp(args->test, names[i]) != 0) continue;
    instance *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->instance.size = sizeof self->instance;
    self->instance.TestMain = test_main;
    self->services = args->services;
    self->animal = &ANIMALS[i / 2];
    self->fixed = i % 2;
    if (self->animal->parameter) self->size = args->services->distribution(args->context, self->animal->parameter);
    return &self->instance;
  }
  return NULL;
}

void DestroyInstance(waylay_instance *instance) { free(instance); }
