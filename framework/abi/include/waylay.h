/* waylay.h: the contract between a test plugin and the Waylay host, in C11.
 *
 * A plugin is a dynamic library that exports WaylayPlugin, CreateInstance and DestroyInstance. An instance goes
 * through OnTestStart, then TestMain again and again on all of its workers at the same time, then OnTestCancelled
 * (from any thread, while workers may be inside TestMain; quick), then OnTestEnd when nobody is inside any more. When
 * OnTestStart fails only DestroyInstance follows. C++ users include waylay.hpp instead; it exports the three by itself.
 * In C, WAYLAY_TEST and WAYLAY_TESTS at the end of this file do; or fill in the structs yourself, as you like.
 */
#ifndef WAYLAY_H
#define WAYLAY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <new>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WAYLAY_ABI_VERSION 1u

#if defined(_WIN32)
#define WAYLAY_EXPORT __declspec(dllexport)
#else
#define WAYLAY_EXPORT __attribute__((visibility("default")))
#endif

/* WAYLAY_COMMIT("3f2a9c1"); once in a plugin or a program: the commit that it is built from, best given by the build (cc
 * -DCOMMIT='"..."'). Reports name it beside the build id, and say between which commits a failure came. */
#if defined(__GNUC__)
#define WAYLAY_COMMIT(commit) static const char waylay_commit[] __attribute__((used)) = "waylay-commit=" commit
#else
#define WAYLAY_COMMIT(commit) extern const char waylay_commit[]; const char waylay_commit[] = "waylay-commit=" commit
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
#if defined(__MINGW_PRINTF_FORMAT)
__attribute__((format(__MINGW_PRINTF_FORMAT, 3, 4)))
#elif defined(__GNUC__)
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

/* What every test of WAYLAY_TEST begins with. */
typedef struct waylay_head {
  waylay_instance instance; /* first, so that the host's pointer is the test's */
  void (*destroy)(struct waylay_head *head);
  void *block; /* what was allocated */
} waylay_head;

/* A zeroed block of that size and alignment, which begins with a waylay_head; C11's aligned_alloc is not everywhere. */
static inline void *waylay_allocate(size_t size, size_t alignment) {
  char *block = (char *)calloc(1, size + alignment);
  waylay_head *head;
  if (block == NULL) return NULL;
  head = (waylay_head *)(void *)(block + (alignment - (uintptr_t)block % alignment) % alignment);
  head->block = block;
  return head;
}

#ifdef __cplusplus
}
#endif

/* Tests without tables, in C11 (and C++17):
 *
 *   WAYLAY_TEST(transfers, "money that appears or vanishes when transfers overlap",
 *               param(amount, "{ uniform = { min = 1, max = 100 } }", "what is transferred"),
 *               fields(pthread_mutex_t lock; int64_t balance), start, end);
 *
 *   static int32_t transfers_start(transfers *self) { ... }
 *   static int32_t transfers_main(transfers *self, waylay_context *worker) {
 *     int64_t amount = self->host->draw_int(worker, self->amount);
 *     WAYLAY_CHECK(self, worker, amount > 0, "drew %lld", (long long)amount);
 *     return WAYLAY_OK;
 *   }
 *   static void transfers_end(transfers *self) { ... }
 *
 *   WAYLAY_TESTS("bank", test(transfers));
 *
 * WAYLAY_TEST declares the type `transfers` of one live test, zeroed when it is made, and the functions that you define
 * after it. What may follow the sentence, in any order, at most 32 in all:
 *
 *   param(field, default, about)                a distribution; self->field is its handle
 *   param_named(field, "name", default, about)  the same for a name that is no identifier in C
 *   fields(declarations)                        what the test keeps: self->balance
 *   start, cancelled, end                       it has the functions transfers_start, which returns a status,
 *                                               transfers_cancelled and transfers_end, which return nothing
 *   takes("kind")                               a shared kind that it can take
 *   combines                                    WAYLAY_TEST_COMBINES
 *
 * Fields and handles share the names of one struct. Beside them self has `host` (the services) and `context` (the instance
 * context). WAYLAY_TEST_NAMED takes the name that configurations use as its second argument. Tests may lie in several files;
 * WAYLAY_TESTS stands once in a plugin and lists test(of WAYLAY_TEST), kind(a waylay_kind_info) and
 * hooks(a waylay_hooks_info). */
#define WAYLAY_TEST(T, ...) WAYLAY_TEST_NAMED(T, #T, __VA_ARGS__)
#define WAYLAY_TEST_NAMED(T, name, ...)                                                                             \
  typedef struct T T;                                                                                               \
  struct T {                                                                                                        \
    waylay_head head;                                                                                               \
    const waylay_services *host;                                                                                    \
    waylay_context *context;                                                                                        \
    WAYLAY_EACH_(WAYLAY_FIELD_, T, __VA_ARGS__)                                                                     \
  };                                                                                                                \
  static int32_t T##_main(T *self, waylay_context *worker);                                                         \
  static int32_t T##_waylay_main(waylay_instance *instance, waylay_context *worker) {                               \
    return T##_main((T *)(void *)instance, worker);                                                                 \
  }                                                                                                                 \
  WAYLAY_EACH_(WAYLAY_DECLARE_, T, __VA_ARGS__)                                                                     \
  static const waylay_param_info *const T##_waylay_params[] = {WAYLAY_EACH_(WAYLAY_POINT_, T, __VA_ARGS__) NULL};   \
  static const char *const T##_waylay_takes[] = {WAYLAY_EACH_(WAYLAY_TAKE_, T, __VA_ARGS__) NULL};                  \
  static void T##_waylay_destroy(waylay_head *head) { WAYLAY_DELETE_(T, head); }                                    \
  WAYLAY_DECLARE_TEST_(T)                                                                                           \
  const waylay_test_info waylay_entry_##T = {sizeof(waylay_test_info),                                              \
                                             0u WAYLAY_EACH_(WAYLAY_FLAG_, T, __VA_ARGS__),                         \
                                             name,                                                                  \
                                             WAYLAY_FIRST_(__VA_ARGS__, ),                                          \
                                             T##_waylay_params,                                                     \
                                             T##_waylay_takes,                                                      \
                                             WAYLAY_LISTED_(T##_waylay_params),                                     \
                                             WAYLAY_LISTED_(T##_waylay_takes)};                                     \
  waylay_instance *waylay_make_##T(const waylay_create_args *args) {                                                \
    T *self = WAYLAY_NEW_(T);                                                                                       \
    int complete = 1;                                                                                               \
    if (self == NULL) return NULL;                                                                                  \
    self->head.destroy = T##_waylay_destroy;                                                                        \
    self->head.instance.size = (uint32_t)sizeof self->head.instance;                                                \
    self->head.instance.TestMain = T##_waylay_main;                                                                 \
    self->host = args->services;                                                                                    \
    self->context = args->context;                                                                                  \
    WAYLAY_EACH_(WAYLAY_SET_, T, __VA_ARGS__)                                                                       \
    if (complete) return &self->head.instance;                                                                      \
    T##_waylay_destroy(&self->head);                                                                                \
    return NULL;                                                                                                    \
  }                                                                                                                 \
  WAYLAY_END_(T)

#define WAYLAY_TESTS(name, ...)                                                                                      \
  WAYLAY_EACH_(WAYLAY_LINK_, , name, __VA_ARGS__)                                                                    \
  static const waylay_test_info *const waylay_listed_tests[] = {WAYLAY_EACH_(WAYLAY_TESTED_, , name, __VA_ARGS__) NULL};  \
  static const waylay_kind_info *const waylay_listed_kinds[] = {WAYLAY_EACH_(WAYLAY_SHARED_, , name, __VA_ARGS__) NULL};  \
  static const waylay_hooks_info *const waylay_listed_hooks[] = {WAYLAY_EACH_(WAYLAY_HOOKED_, , name, __VA_ARGS__) NULL}; \
  static const waylay_plugin_info waylay_listed_plugin = {sizeof(waylay_plugin_info),                                \
                                                          WAYLAY_ABI_VERSION,                                        \
                                                          name,                                                      \
                                                          waylay_listed_tests,                                       \
                                                          waylay_listed_kinds,                                       \
                                                          WAYLAY_LISTED_(waylay_listed_tests),                       \
                                                          WAYLAY_LISTED_(waylay_listed_kinds),                       \
                                                          waylay_listed_hooks,                                       \
                                                          WAYLAY_LISTED_(waylay_listed_hooks),                       \
                                                          0};                                                        \
  const waylay_plugin_info *WaylayPlugin(void) { return &waylay_listed_plugin; }                                     \
  waylay_instance *CreateInstance(const waylay_create_args *args) {                                                  \
    WAYLAY_EACH_(WAYLAY_CHOOSE_, , name, __VA_ARGS__)                                                                \
    (void)args;                                                                                                      \
    return NULL;                                                                                                     \
  }                                                                                                                  \
  void DestroyInstance(waylay_instance *instance) {                                                                  \
    waylay_head *head = (waylay_head *)(void *)instance;                                                             \
    if (head != NULL) head->destroy(head);                                                                           \
  }                                                                                                                  \
  WAYLAY_END_(plugin)

/* In a function that returns a status: unless the condition holds, fails with a printf format and returns. */
#define WAYLAY_CHECK(self, context_, condition, ...)               \
  do {                                                            \
    if (!(condition)) {                                           \
      waylay_failf((self)->host, (context_), __VA_ARGS__);        \
      return WAYLAY_FAILED;                                       \
    }                                                             \
  } while (0)

/* From here on, how it is done. Each word of a list is pasted behind what is being made of it, so a word that does not exist
 * is an error that names it: `WAYLAY_DECLARE_parm`. */
#define WAYLAY_LISTED_(array) (uint32_t)(sizeof(array) / sizeof(array)[0] - 1)
#define WAYLAY_FIRST_(first, ...) first
/* Makes the semicolon that follows a use necessary. */
#define WAYLAY_END_(T) struct T##_waylay_semicolon

#ifdef __cplusplus
#define WAYLAY_NEW_(T) new (std::nothrow) T()
#define WAYLAY_DELETE_(T, head) delete (T *)(void *)(head)
#define WAYLAY_C_ extern "C"
#else
#define WAYLAY_NEW_(T) (T *)waylay_allocate(sizeof(T), _Alignof(T))
#define WAYLAY_DELETE_(T, head) free((head)->block)
#define WAYLAY_C_ extern
#endif
#if defined(_WIN32)
#define WAYLAY_HIDDEN_
#else
#define WAYLAY_HIDDEN_ __attribute__((visibility("hidden")))
#endif
#define WAYLAY_DECLARE_TEST_(T)                                            \
  WAYLAY_C_ WAYLAY_HIDDEN_ const waylay_test_info waylay_entry_##T;        \
  WAYLAY_C_ WAYLAY_HIDDEN_ waylay_instance *waylay_make_##T(const waylay_create_args *args);

/* Members of the struct. */
#define WAYLAY_FIELD_(T, word) WAYLAY_FIELD_##word
#define WAYLAY_FIELD_param(field, value, about) const waylay_distribution *field;
#define WAYLAY_FIELD_param_named(field, name, value, about) const waylay_distribution *field;
#define WAYLAY_FIELD_fields(...) __VA_ARGS__;
#define WAYLAY_FIELD_takes(kind)
#define WAYLAY_FIELD_combines
#define WAYLAY_FIELD_start
#define WAYLAY_FIELD_cancelled
#define WAYLAY_FIELD_end

/* Declarations after the struct: what the host reads of a parameter, and calls that find their test. A word's own arguments
 * follow those of the test, so it takes a second step. */
#define WAYLAY_DECLARE_(T, word) WAYLAY_CALL_(WAYLAY_DECLARE_, T, WAYLAY_SPLIT_##word)
#define WAYLAY_SET_(T, word) WAYLAY_CALL_(WAYLAY_SET_, T, WAYLAY_SPLIT_##word)
#define WAYLAY_POINT_(T, word) WAYLAY_CALL_(WAYLAY_POINT_, T, WAYLAY_SPLIT_##word)
#define WAYLAY_CALL_(step, T, ...) WAYLAY_CALL_NOW_(step, T, __VA_ARGS__)
#define WAYLAY_CALL_NOW_(step, T, word, ...) step##word(T, __VA_ARGS__)
#define WAYLAY_SPLIT_param(field, value, about) PARAM, field, #field, value, about
#define WAYLAY_SPLIT_param_named(field, name, value, about) PARAM, field, name, value, about
#define WAYLAY_SPLIT_fields(...) NOTHING,
#define WAYLAY_SPLIT_takes(kind) NOTHING,
#define WAYLAY_SPLIT_combines NOTHING,
#define WAYLAY_SPLIT_start START,
#define WAYLAY_SPLIT_cancelled CANCELLED,
#define WAYLAY_SPLIT_end END,

#define WAYLAY_DECLARE_NOTHING(T, ...)
#define WAYLAY_DECLARE_PARAM(T, field, name, value, about) \
  static const waylay_param_info T##_waylay_param_##field = {sizeof(waylay_param_info), 0, name, value, about};
#define WAYLAY_DECLARE_START(T, ...)      \
  static int32_t T##_start(T *self);      \
  static int32_t T##_waylay_start(waylay_instance *instance) { return T##_start((T *)(void *)instance); }
#define WAYLAY_DECLARE_CANCELLED(T, ...)  \
  static void T##_cancelled(T *self);     \
  static void T##_waylay_cancelled(waylay_instance *instance) { T##_cancelled((T *)(void *)instance); }
#define WAYLAY_DECLARE_END(T, ...)        \
  static void T##_end(T *self);           \
  static void T##_waylay_end(waylay_instance *instance) { T##_end((T *)(void *)instance); }

#define WAYLAY_SET_NOTHING(T, ...)
#define WAYLAY_SET_PARAM(T, field, name, value, about)           \
  self->field = self->host->distribution(self->context, name);   \
  complete = complete && self->field != NULL;
#define WAYLAY_SET_START(T, ...) self->head.instance.OnTestStart = T##_waylay_start;
#define WAYLAY_SET_CANCELLED(T, ...) self->head.instance.OnTestCancelled = T##_waylay_cancelled;
#define WAYLAY_SET_END(T, ...) self->head.instance.OnTestEnd = T##_waylay_end;

#define WAYLAY_POINT_NOTHING(T, ...)
#define WAYLAY_POINT_PARAM(T, field, name, value, about) &T##_waylay_param_##field,
#define WAYLAY_POINT_START(T, ...)
#define WAYLAY_POINT_CANCELLED(T, ...)
#define WAYLAY_POINT_END(T, ...)

/* What is in the table of the test itself. */
#define WAYLAY_TAKE_(T, word) WAYLAY_TAKE_##word
#define WAYLAY_TAKE_param(field, value, about)
#define WAYLAY_TAKE_param_named(field, name, value, about)
#define WAYLAY_TAKE_fields(...)
#define WAYLAY_TAKE_takes(kind) kind,
#define WAYLAY_TAKE_combines
#define WAYLAY_TAKE_start
#define WAYLAY_TAKE_cancelled
#define WAYLAY_TAKE_end
#define WAYLAY_FLAG_(T, word) WAYLAY_FLAG_##word
#define WAYLAY_FLAG_param(field, value, about)
#define WAYLAY_FLAG_param_named(field, name, value, about)
#define WAYLAY_FLAG_fields(...)
#define WAYLAY_FLAG_takes(kind)
#define WAYLAY_FLAG_combines | WAYLAY_TEST_COMBINES
#define WAYLAY_FLAG_start
#define WAYLAY_FLAG_cancelled
#define WAYLAY_FLAG_end

/* The words of WAYLAY_TESTS. */
#define WAYLAY_LINK_(T, word) WAYLAY_LINK_##word
#define WAYLAY_LINK_test(T) WAYLAY_DECLARE_TEST_(T)
#define WAYLAY_LINK_kind(info)
#define WAYLAY_LINK_hooks(info)
#define WAYLAY_TESTED_(T, word) WAYLAY_TESTED_##word
#define WAYLAY_TESTED_test(T) &waylay_entry_##T,
#define WAYLAY_TESTED_kind(info)
#define WAYLAY_TESTED_hooks(info)
#define WAYLAY_SHARED_(T, word) WAYLAY_SHARED_##word
#define WAYLAY_SHARED_test(T)
#define WAYLAY_SHARED_kind(info) &info,
#define WAYLAY_SHARED_hooks(info)
#define WAYLAY_HOOKED_(T, word) WAYLAY_HOOKED_##word
#define WAYLAY_HOOKED_test(T)
#define WAYLAY_HOOKED_kind(info)
#define WAYLAY_HOOKED_hooks(info) &info,
#define WAYLAY_CHOOSE_(T, word) WAYLAY_CHOOSE_##word
#define WAYLAY_CHOOSE_test(T) \
  if (strcmp(args->test, waylay_entry_##T.name) == 0) return waylay_make_##T(args);
#define WAYLAY_CHOOSE_kind(info)
#define WAYLAY_CHOOSE_hooks(info)

/* step(T, word) for every word after the first argument, which is the sentence or the plugin's name. */
#define WAYLAY_EACH_(step, T, ...) WAYLAY_PASTE_(WAYLAY_EACH_, WAYLAY_COUNT_(__VA_ARGS__))(step, T, __VA_ARGS__, )
#define WAYLAY_PASTE_(a, b) WAYLAY_PASTE_NOW_(a, b)
#define WAYLAY_PASTE_NOW_(a, b) a##b
#define WAYLAY_COUNT_(...) \
  WAYLAY_NTH_(__VA_ARGS__, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, \
              12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define WAYLAY_NTH_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, \
                    _17, _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, \
                    _33, count, ...)                                                                            \
  count
#define WAYLAY_EACH_1(step, T, first, ...)
#define WAYLAY_EACH_2(step, T, first, word, ...) step(T, word) WAYLAY_EACH_1(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_3(step, T, first, word, ...) step(T, word) WAYLAY_EACH_2(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_4(step, T, first, word, ...) step(T, word) WAYLAY_EACH_3(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_5(step, T, first, word, ...) step(T, word) WAYLAY_EACH_4(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_6(step, T, first, word, ...) step(T, word) WAYLAY_EACH_5(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_7(step, T, first, word, ...) step(T, word) WAYLAY_EACH_6(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_8(step, T, first, word, ...) step(T, word) WAYLAY_EACH_7(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_9(step, T, first, word, ...) step(T, word) WAYLAY_EACH_8(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_10(step, T, first, word, ...) step(T, word) WAYLAY_EACH_9(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_11(step, T, first, word, ...) step(T, word) WAYLAY_EACH_10(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_12(step, T, first, word, ...) step(T, word) WAYLAY_EACH_11(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_13(step, T, first, word, ...) step(T, word) WAYLAY_EACH_12(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_14(step, T, first, word, ...) step(T, word) WAYLAY_EACH_13(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_15(step, T, first, word, ...) step(T, word) WAYLAY_EACH_14(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_16(step, T, first, word, ...) step(T, word) WAYLAY_EACH_15(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_17(step, T, first, word, ...) step(T, word) WAYLAY_EACH_16(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_18(step, T, first, word, ...) step(T, word) WAYLAY_EACH_17(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_19(step, T, first, word, ...) step(T, word) WAYLAY_EACH_18(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_20(step, T, first, word, ...) step(T, word) WAYLAY_EACH_19(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_21(step, T, first, word, ...) step(T, word) WAYLAY_EACH_20(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_22(step, T, first, word, ...) step(T, word) WAYLAY_EACH_21(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_23(step, T, first, word, ...) step(T, word) WAYLAY_EACH_22(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_24(step, T, first, word, ...) step(T, word) WAYLAY_EACH_23(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_25(step, T, first, word, ...) step(T, word) WAYLAY_EACH_24(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_26(step, T, first, word, ...) step(T, word) WAYLAY_EACH_25(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_27(step, T, first, word, ...) step(T, word) WAYLAY_EACH_26(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_28(step, T, first, word, ...) step(T, word) WAYLAY_EACH_27(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_29(step, T, first, word, ...) step(T, word) WAYLAY_EACH_28(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_30(step, T, first, word, ...) step(T, word) WAYLAY_EACH_29(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_31(step, T, first, word, ...) step(T, word) WAYLAY_EACH_30(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_32(step, T, first, word, ...) step(T, word) WAYLAY_EACH_31(step, T, first, __VA_ARGS__)
#define WAYLAY_EACH_33(step, T, first, word, ...) step(T, word) WAYLAY_EACH_32(step, T, first, __VA_ARGS__)

#endif
