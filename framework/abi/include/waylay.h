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

/* A kind of object that several tests can work on. The host owns every object; see acquire and release. */
typedef struct waylay_kind_info {
  uint32_t size; /* sizeof(waylay_kind_info) */
  uint32_t flags;
  const char *name;
  const char *about;
  void *(*create)(void);
  void (*destroy)(void *object);
} waylay_kind_info;

/* The whole plugin. */
typedef struct waylay_plugin_info {
  uint32_t size;        /* sizeof(waylay_plugin_info) */
  uint32_t abi_version; /* WAYLAY_ABI_VERSION */
  const char *name;
  const waylay_test_info *const *tests;
  const waylay_kind_info *const *kinds;
  uint32_t test_count;
  uint32_t kind_count;
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
  void (*release)(waylay_context *context, void *object);
  /* Says that a long iteration is getting somewhere: late, but not stuck. */
  void (*progress)(waylay_context *context);
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
