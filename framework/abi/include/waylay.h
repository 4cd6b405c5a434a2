/* waylay.h: the contract between a test plugin and the Waylay host, in C11.
 *
 * A plugin is a dynamic library that exports WaylayPlugin, CreateInstance and DestroyInstance. An instance goes
 * through OnTestStart, then TestMain again and again on all of its workers at the same time, then OnTestCancelled
 * (from any thread, while workers may be inside TestMain; quick), then OnTestEnd when nobody is inside any more. When
 * OnTestStart fails only DestroyInstance follows. C++ users include waylay.hpp instead; it exports the three by itself.
 */
#ifndef WAYLAY_H
#define WAYLAY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAYLAY_ABI_VERSION 1u

#if defined(_WIN32)
#define WAYLAY_EXPORT __declspec(dllexport)
#else
#define WAYLAY_EXPORT __attribute__((visibility("default")))
#endif

/* What OnTestStart and TestMain return. */
enum {
  WAYLAY_OK = 0,     /* went well */
  WAYLAY_FAILED = 1, /* cannot start; or this iteration failed (say why with waylay_fail first) */
  WAYLAY_DONE = 2    /* TestMain: nothing more to do, do not call this worker again */
};

/* waylay_failure.kind */
enum { WAYLAY_FAILURE_ASSERT = 0, WAYLAY_FAILURE_PANIC = 1, WAYLAY_FAILURE_EXCEPTION = 2 };

/* Levels for log. */
enum { WAYLAY_LOG_DEBUG = 0, WAYLAY_LOG_INFO = 1, WAYLAY_LOG_WARN = 2 };

/* waylay_test_info.flags: the test runs other tests, which the configuration names under `contains`. */
enum { WAYLAY_TEST_COMBINES = 1 };

/* waylay_turn.flags: run one iteration again and again instead of going on to the next. */
enum { WAYLAY_TURN_REPEAT = 1 };

/* State of a contained test. */
enum { WAYLAY_CONTAINED_UNLOADED = 0, WAYLAY_CONTAINED_READY = 1, WAYLAY_CONTAINED_RETIRED = 2 };

/* Opaque. The instance context (from waylay_create_args) serves any thread until DestroyInstance returns. A worker
 * context (from TestMain) serves the thread that received it until that call returns; fail, log, cancelled and progress
 * take it on threads that the iteration itself started and joins. */
typedef struct waylay_context waylay_context;
/* Opaque: a named random distribution; lives as long as the instance. */
typedef struct waylay_distribution waylay_distribution;

/* One parameter of a test: a distribution that the configuration may replace. */
typedef struct waylay_param_info {
  uint32_t size; /* sizeof(waylay_param_info) */
  uint32_t flags;
  const char *name;
  const char *default_value; /* one TOML value, e.g. "{ uniform = { min = 1, max = 64 } }"; NULL: must be configured */
  const char *about;
} waylay_param_info;

/* One test of a plugin. */
typedef struct waylay_test_info {
  uint32_t size; /* sizeof(waylay_test_info) */
  uint32_t flags;
  const char *name;
  const char *about; /* one line: what bug this test would notice */
  const waylay_param_info *const *params;
  const char *const *takes; /* shared kinds that the test can take */
  uint32_t param_count;
  uint32_t take_count;
} waylay_test_info;

/* A kind of object that several tests can work on at the same time. The host owns every object, from create to destroy,
 * and nobody else calls either. A test that was lent an object by acquire may use it until it calls release or TestMain
 * returns, whichever is first; with keep it is the instance's until released with the instance context, or until
 * DestroyInstance. A combiner has a pool of objects of each kind and replaces them now and then: an object that was
 * replaced is lent to nobody any more and destroyed when the last holder has given it back. */
typedef struct waylay_kind_info {
  uint32_t size; /* sizeof(waylay_kind_info) */
  uint32_t flags;
  const char *name;
  const char *about;
  void *(*create)(void);
  void (*destroy)(void *object);
} waylay_kind_info;

/* One contained test, as a combiner and its hooks see it. */
typedef struct waylay_contained_info {
  uint32_t size;  /* sizeof(waylay_contained_info) */
  uint32_t state; /* WAYLAY_CONTAINED_* */
  const char *name;
  double share;         /* of the time, relative to the other tests */
  double average_nanos; /* of an iteration, from before this process; 0: not known */
  double given_nanos;   /* time in this campaign from before this process */
} waylay_contained_info;

/* The combiner itself, as configured. */
typedef struct waylay_container_info {
  uint32_t size;        /* sizeof(waylay_container_info) */
  uint32_t tests;       /* how many it contains */
  uint32_t workers;     /* how many threads call its TestMain at the same time */
  uint32_t worker;      /* number of the calling one */
  const char *settings; /* the `pot` table as one JSON object; lives as long as the instance */
} waylay_container_info;

/* What a combiner asks for. */
typedef struct waylay_turn {
  uint32_t size;        /* sizeof(waylay_turn) */
  uint32_t test;        /* which contained test */
  uint64_t times;       /* at most so many iterations */
  uint64_t limit_nanos; /* no further iteration begins after that; 0: no limit */
  uint32_t flags;
  uint32_t reserved;
  uint64_t iteration; /* with WAYLAY_TURN_REPEAT: whose random numbers */
} waylay_turn;

/* What came of it. */
typedef struct waylay_ran {
  uint32_t size;  /* sizeof(waylay_ran) */
  uint32_t state; /* WAYLAY_CONTAINED_* after the turn */
  uint64_t times; /* iterations that were run */
  uint64_t nanos; /* time inside TestMain */
  uint64_t failures;
} waylay_ran;

/* Hooks into a combiner: given to it by the configuration under `hooks`; the host calls them for every test that the
 * combiner contains. All but create and destroy may be NULL. on_start and on_stop are called on the workers' threads,
 * many at the same time; the others one at a time. */
typedef struct waylay_hooks_info {
  uint32_t size; /* sizeof(waylay_hooks_info) */
  uint32_t flags;
  const char *name;
  const char *about;
  void *(*create)(void); /* once per combiner; NULL: the combiner cannot run */
  void (*destroy)(void *hooks);
  void (*on_load)(void *hooks, const waylay_contained_info *test);   /* created and started */
  void (*on_unload)(void *hooks, const waylay_contained_info *test); /* about to be ended and destroyed */
  void (*on_start)(void *hooks, const waylay_contained_info *test, uint32_t worker);
  void (*on_stop)(void *hooks, const waylay_contained_info *test, uint32_t worker, const waylay_ran *ran);
} waylay_hooks_info;

/* The whole plugin. */
typedef struct waylay_plugin_info {
  uint32_t size;        /* sizeof(waylay_plugin_info) */
  uint32_t abi_version; /* WAYLAY_ABI_VERSION */
  const char *name;
  const waylay_test_info *const *tests;
  const waylay_kind_info *const *kinds;
  uint32_t test_count;
  uint32_t kind_count;
  const waylay_hooks_info *const *hooks; /* for combiners; read only if size reaches past hook_count */
  uint32_t hook_count;
  uint32_t reserved;
} waylay_plugin_info;

/* A failure as a test reports it. */
typedef struct waylay_failure {
  uint32_t size; /* sizeof(waylay_failure) */
  uint32_t kind;
  const char *message;
  size_t message_len;
  const uintptr_t *frames; /* where it failed, innermost first, if known better than by the caller of fail */
  size_t frame_count;
} waylay_failure;

/* What the host does for a test that runs other tests, which are counted from 0. Each is loaded once, run on the
 * combiner's workers in any mix, cancelled, and unloaded when nobody runs it. What goes wrong inside is the contained
 * test's: its failures, its memory, its time. */
typedef struct waylay_combine {
  uint32_t size;
  uint32_t reserved;
  void (*container)(waylay_context *context, waylay_container_info *info);
  /* 0 when there is none of that number. */
  int32_t (*contained)(waylay_context *context, uint32_t test, waylay_contained_info *info);
  /* CreateInstance and OnTestStart; a status. */
  int32_t (*load)(waylay_context *context, uint32_t test);
  /* Worker context only, on its thread. Returns early when the test is cancelled or retired. */
  void (*run)(waylay_context *worker, const waylay_turn *turn, waylay_ran *ran);
  /* 1: this worker waits for others from now on, so it is not late; 0: no longer. */
  void (*waiting)(waylay_context *worker, int32_t waits);
  /* The share of the time that a test is meant to get, for the report. */
  void (*ask)(waylay_context *context, uint32_t test, double share);
  void (*cancel)(waylay_context *context, uint32_t test);
  /* OnTestEnd and DestroyInstance; nobody may be running it. */
  void (*unload)(waylay_context *context, uint32_t test);
} waylay_combine;

/* What the host does for a test. A field that was added after version 1 first appeared is there only if size reaches
 * past it. */
typedef struct waylay_services {
  uint32_t size;
  uint32_t abi_version;
  /* Returns after the evidence was taken; then return WAYLAY_FAILED. */
  void (*fail)(waylay_context *context, const waylay_failure *failure);
  void (*log)(waylay_context *context, uint32_t level, const char *text, size_t length);
  /* 1 once the test is to stop. */
  int32_t (*cancelled)(waylay_context *context);
  /* The seed of this iteration (worker) or of this test (instance). */
  uint64_t (*seed)(waylay_context *context);
  /* NULL if the test has no parameter of that name. */
  const waylay_distribution *(*distribution)(waylay_context *context, const char *name);
  int64_t (*draw_int)(waylay_context *context, const waylay_distribution *distribution);
  double (*draw_float)(waylay_context *context, const waylay_distribution *distribution);
  uint64_t (*draw_nanos)(waylay_context *context, const waylay_distribution *distribution);
  /* Lends an object until it is released or TestMain returns; NULL when nobody provides the kind. */
  void *(*acquire)(waylay_context *context, const char *kind);
  /* Worker context: what this iteration holds; instance context: what was kept. Anything else is ignored. */
  void (*release)(waylay_context *context, void *object);
  /* Says that a long iteration is getting somewhere: late, but not stuck. */
  void (*progress)(waylay_context *context);
  /* Keeps an object that this iteration holds (worker context) past its end: the instance's until it is released with
   * the instance context, or until DestroyInstance. 1, or 0 when the iteration does not hold it. */
  int32_t (*keep)(waylay_context *context, void *object);
  /* For tests with WAYLAY_TEST_COMBINES, else NULL. */
  const waylay_combine *combine;
} waylay_services;

/* What CreateInstance is told. */
typedef struct waylay_create_args {
  uint32_t size;
  uint32_t abi_version;
  const char *test; /* which of the plugin's tests */
  const waylay_services *services;
  waylay_context *context; /* the instance context */
} waylay_create_args;

/* One live test. Embed it in a struct of your own, or hang your data on state. */
typedef struct waylay_instance waylay_instance;
struct waylay_instance {
  uint32_t size; /* sizeof(waylay_instance) */
  uint32_t flags;
  int32_t (*OnTestStart)(waylay_instance *self);                      /* may be NULL */
  int32_t (*TestMain)(waylay_instance *self, waylay_context *worker); /* required */
  void (*OnTestCancelled)(waylay_instance *self);                     /* may be NULL */
  void (*OnTestEnd)(waylay_instance *self);                           /* may be NULL */
  void *state;
};

/* The three functions that a plugin exports. */
WAYLAY_EXPORT const waylay_plugin_info *WaylayPlugin(void);
WAYLAY_EXPORT waylay_instance *CreateInstance(const waylay_create_args *args);
WAYLAY_EXPORT void DestroyInstance(waylay_instance *instance);

/* Reports that the test noticed something wrong; returns after the evidence was taken. */
static inline void waylay_fail(const waylay_services *services, waylay_context *context, const char *message) {
  waylay_failure failure;
  memset(&failure, 0, sizeof failure);
  failure.size = (uint32_t)sizeof failure;
  failure.kind = WAYLAY_FAILURE_ASSERT;
  failure.message = message;
  failure.message_len = strlen(message);
  services->fail(context, &failure);
}

/* The same with a printf format; the message is cut at 511 bytes. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline void waylay_failf(const waylay_services *services, waylay_context *context, const char *format, ...) {
  char message[512];
  va_list values;
  va_start(values, format);
  if (vsnprintf(message, sizeof message, format, values) < 0) message[0] = '\0';
  va_end(values);
  waylay_fail(services, context, message);
}

/* Draws an index below count; what the distribution gives outside of it is moved to the nearest index. */
static inline size_t waylay_draw_index(const waylay_services *services, waylay_context *context,
                                       const waylay_distribution *distribution, size_t count) {
  int64_t drawn = services->draw_int(context, distribution);
  if (drawn < 0 || count == 0) return 0;
  return (uint64_t)drawn < (uint64_t)count ? (size_t)drawn : count - 1;
}

/* Writes one line to the host's log. */
static inline void waylay_log(const waylay_services *services, waylay_context *context, const char *text) {
  services->log(context, WAYLAY_LOG_INFO, text, strlen(text));
}

#ifdef __cplusplus
}
#endif

#endif
