/* What gcc and clang call in code compiled with `-fsanitize=thread`, for Windows: there a plugin or program cannot leave the
 * calls for the loader to find, so this file is compiled (without that flag) and linked into it. Each access is reported to
 * the control library, if there is one in the process, and each atomic operation is then carried out here, sequentially
 * consistent whatever order was asked for: only one thread of the program runs at a time. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an access is; the numbers are those of the control library. */
enum { READ = 1, WRITE = 2, LOAD = 3, STORE = 4, RMW = 5 };

typedef void waylay_report(uint32_t kind, uintptr_t address, size_t bytes, uintptr_t code);

/* Found by its name and set by the control library; NULL while nobody wants to know. */
__declspec(dllexport) waylay_report *volatile waylay_steps;

#define HERE ((uintptr_t)__builtin_return_address(0))

static inline void report(uint32_t kind, const volatile void *address, size_t bytes, uintptr_t code) {
  waylay_report *report = waylay_steps;
  if (report) report(kind, (uintptr_t)address, bytes, code);
}

#define ACCESS(name, kind, bytes) \
  void name(void *address) { report(kind, address, bytes, HERE); }
#define ACCESSES(bytes)                                           \
  ACCESS(__tsan_read##bytes, READ, bytes)                         \
  ACCESS(__tsan_write##bytes, WRITE, bytes)                       \
  ACCESS(__tsan_read_write##bytes, WRITE, bytes)                  \
  ACCESS(__tsan_unaligned_read##bytes, READ, bytes)               \
  ACCESS(__tsan_unaligned_write##bytes, WRITE, bytes)             \
  ACCESS(__tsan_unaligned_read_write##bytes, WRITE, bytes)        \
  ACCESS(__tsan_volatile_read##bytes, LOAD, bytes)                \
  ACCESS(__tsan_volatile_write##bytes, STORE, bytes)              \
  ACCESS(__tsan_unaligned_volatile_read##bytes, LOAD, bytes)      \
  ACCESS(__tsan_unaligned_volatile_write##bytes, STORE, bytes)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
ACCESS(__tsan_vptr_read, READ, 8)

void __tsan_vptr_update(void **address, void *value) {
  (void)value;
  report(WRITE, address, sizeof *address, HERE);
}
void __tsan_read_range(void *address, size_t bytes) { report(READ, address, bytes, HERE); }
void __tsan_write_range(void *address, size_t bytes) { report(WRITE, address, bytes, HERE); }

/* Two copies of one block in different places count as one place. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
  if (bytes) report(READ, from, bytes, (uintptr_t)from);
  if (bytes) report(WRITE, to, bytes, (uintptr_t)to);
  return memmove(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes) { return __tsan_memcpy(to, from, bytes); }
void *__tsan_memset(void *to, int byte, size_t bytes) {
  if (bytes) report(WRITE, to, bytes, (uintptr_t)to);
  return memset(to, byte, bytes);
}

void __tsan_init(void) {}
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) {}
void __tsan_atomic_thread_fence(int order) {
  (void)order;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order) {
  (void)order;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Operations of one kind on one object count as one place in the code. */
#define FETCH(bits, type, name)                                                  \
  type __tsan_atomic##bits##_fetch_##name(volatile type *at, type with, int order) { \
    (void)order;                                                                 \
    report(RMW, at, sizeof(type), RMW);                                          \
    return __atomic_fetch_##name(at, with, __ATOMIC_SEQ_CST);                    \
  }
#define COMPARES(bits, type)                                                                                          \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, type value, int order, int failure) { \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, value, order, failure);                        \
  }                                                                                                                   \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value, int order, int failure) { \
    __tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, failure);                              \
    return expected;                                                                                                  \
  }
#define ATOMICS(bits, type)                                                                                           \
  type __tsan_atomic##bits##_load(const volatile type *at, int order) {                                               \
    (void)order;                                                                                                      \
    report(LOAD, at, sizeof(type), LOAD);                                                                             \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                                     \
  }                                                                                                                   \
  void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                                        \
    (void)order;                                                                                                      \
    report(STORE, at, sizeof(type), STORE);                                                                           \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                    \
  }                                                                                                                   \
  type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) {                                     \
    (void)order;                                                                                                      \
    report(RMW, at, sizeof(type), RMW);                                                                               \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                                   \
  FETCH(bits, type, add)                                                                                              \
  FETCH(bits, type, sub)                                                                                              \
  FETCH(bits, type, and)                                                                                              \
  FETCH(bits, type, or)                                                                                               \
  FETCH(bits, type, xor)                                                                                              \
  FETCH(bits, type, nand)                                                                                             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected, type value, int order, int failure) { \
    (void)order;                                                                                                      \
    (void)failure;                                                                                                    \
    report(RMW, at, sizeof(type), RMW);                                                                               \
    return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
  }                                                                                                                   \
  COMPARES(bits, type)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

/* Sixteen bytes, by the one instruction that changes so many at once. */
typedef unsigned __int128 pair;

/* Always part of a function of the tool's: by itself it would be taken for a piece of the program. */
__attribute__((always_inline)) static inline pair compare(volatile pair *at, pair expected, pair value) {
  uint64_t low = (uint64_t)expected, high = (uint64_t)(expected >> 64);
  __asm__ volatile("lock cmpxchg16b %0"
                   : "+m"(*at), "+a"(low), "+d"(high)
                   : "b"((uint64_t)value), "c"((uint64_t)(value >> 64))
                   : "cc", "memory");
  return (pair)high << 64 | low;
}

#define PAIR(name, result)                                                 \
  pair __tsan_atomic128_##name(volatile pair *at, pair with, int order) {  \
    (void)order;                                                           \
    report(RMW, at, sizeof(pair), RMW);                                    \
    pair old = compare(at, 0, 0);                                          \
    for (;;) {                                                             \
      const pair now = compare(at, old, result);                           \
      if (now == old) return old;                                          \
      old = now;                                                           \
    }                                                                      \
  }

PAIR(exchange, with)
PAIR(fetch_add, old + with)
PAIR(fetch_sub, old - with)
PAIR(fetch_and, old &with)
PAIR(fetch_or, old | with)
PAIR(fetch_xor, old ^ with)
PAIR(fetch_nand, ~(old & with))

pair __tsan_atomic128_load(const volatile pair *at, int order) {
  (void)order;
  report(LOAD, at, sizeof(pair), LOAD);
  return compare((volatile pair *)at, 0, 0);
}
void __tsan_atomic128_store(volatile pair *at, pair value, int order) {
  (void)order;
  report(STORE, at, sizeof(pair), STORE);
  pair old = compare(at, 0, 0);
  for (;;) {
    const pair now = compare(at, old, value);
    if (now == old) return;
    old = now;
  }
}
int __tsan_atomic128_compare_exchange_strong(volatile pair *at, pair *expected, pair value, int order, int failure) {
  (void)order;
  (void)failure;
  report(RMW, at, sizeof(pair), RMW);
  const pair old = compare(at, *expected, value);
  const int same = old == *expected;
  *expected = old;
  return same;
}
COMPARES(128, pair)

#ifdef __cplusplus
}
#endif
