// Lock-free programs of Win32 threads, as a library that nobody compiled for Waylay. Each says whether it went well.
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <windows.h>

#define API __declspec(dllexport)

static void both(DWORD(WINAPI *work)(void *)) {
  HANDLE threads[2];
  for (int i = 0; i < 2; i++) threads[i] = CreateThread(NULL, 0, work, (void *)(uintptr_t)i, 0, NULL);
  WaitForMultipleObjects(2, threads, TRUE, INFINITE);
  for (int i = 0; i < 2; i++) CloseHandle(threads[i]);
}

static atomic_int sum, owners, most;

// Takes the sum out and puts it back: what another thread takes out meanwhile is lost.
static DWORD WINAPI add_in_two(void *unused) {
  (void)unused;
  int seen = atomic_exchange(&sum, 0);
  atomic_exchange(&sum, seen + 1);
  return 0;
}

API int lost_update(void) {
  atomic_store_explicit(&sum, 0, memory_order_relaxed);
  both(add_in_two);
  return atomic_load(&sum) == 2;
}

static DWORD WINAPI add_in_one(void *unused) {
  (void)unused;
  atomic_fetch_add(&sum, 1);
  atomic_fetch_add(&sum, 1);
  return 0;
}

// The same number of steps, and nothing to lose.
API int added(void) {
  atomic_store_explicit(&sum, 0, memory_order_relaxed);
  both(add_in_one);
  return atomic_load(&sum) == 4;
}

static atomic_flag guard = ATOMIC_FLAG_INIT;

static void lock(void) {
  while (atomic_flag_test_and_set(&guard)) __builtin_ia32_pause();
}

// Whoever is inside counts itself: never two.
static DWORD WINAPI go_inside(void *unused) {
  (void)unused;
  for (int i = 0; i < 3; i++) {
    lock();
    int now = atomic_fetch_add(&owners, 1) + 1;
    if (now > atomic_load(&most)) atomic_exchange(&most, now);
    atomic_fetch_sub(&owners, 1);
    atomic_flag_clear(&guard);
  }
  return 0;
}

API int spin_lock(void) {
  atomic_exchange(&most, 0);
  both(go_inside);
  return atomic_load(&most) == 1;
}

static atomic_int turn;

// Each waits for the other by looking at a word, with nothing else in the loop.
static DWORD WINAPI take_turns(void *me) {
  for (int i = 0; i < 3; i++) {
    while (atomic_load_explicit(&turn, memory_order_acquire) % 2 != (int)(uintptr_t)me) {
    }
    atomic_store_explicit(&turn, atomic_load_explicit(&turn, memory_order_relaxed) + 1, memory_order_release);
  }
  return 0;
}

API int turns(void) {
  atomic_store_explicit(&turn, 0, memory_order_relaxed);
  both(take_turns);
  return atomic_load(&turn) == 6;
}

static volatile int ready, same;
static volatile double looked;

// Looks at a word and counts, in memory and in registers, without a call or an atomic instruction.
static DWORD WINAPI look_for_it(void *unused) {
  (void)unused;
  double in_vector = looked = 0;
  uint64_t in_register = 0;
  while (!ready) {
    looked = looked + 1;
    in_vector += 1;
    in_register++;
  }
  same = looked == in_vector && looked == (double)in_register;
  return 0;
}

API int busy(void) {
  ready = 0;
  same = 0;
  HANDLE thread = CreateThread(NULL, 0, look_for_it, NULL, 0, NULL);
  ready = 1;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  return same;
}

// What a thread has in its registers, before and behind three sites: one that is long enough by itself, one that is replaced
// together with what follows, and one that nothing but a breakpoint fits on, because a jump leads behind it.
struct registers {
  uint32_t vectors[16];
  uint64_t shared;
  uint64_t general[8];
  uint32_t kept[16][8];
};

#define ALL(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)
#ifdef WIDE
#define LANES 8
#define FILL(n) "vbroadcastss " #n "*4(%%rbx), %%ymm" #n "\n"
#define KEEP(n) "vmovups %%ymm" #n ", 136+" #n "*32(%%rbx)\n"
#else
#define LANES 4
#define FILL(n) "movss " #n "*4(%%rbx), %%xmm" #n "\nshufps $0, %%xmm" #n ", %%xmm" #n "\n"
#define KEEP(n) "movups %%xmm" #n ", 136+" #n "*32(%%rbx)\n"
#endif

static atomic_int changed;

static DWORD WINAPI keep_registers(void *me) {
  // Overflow, sign, zero, parity and carry.
  const uint64_t mask = 0x8c5;
  struct registers r;
  for (uint32_t i = 0; i < 16; i++) r.vectors[i] = 0x3f800000 + (uint32_t)(uintptr_t)me * 0x10000 + i;
  const uint64_t seed = 0x1122334455667788ull + (uintptr_t)me;
  __asm__ volatile(ALL(FILL)
                   // Overflow, sign, parity and carry are set, zero is not.
                   "mov $0x7f, %%al\n"
                   "add $2, %%al\n"
                   "stc\n"
                   "mov %%rdi, %%rax\n"
                   "lea 1(%%rdi), %%rcx\n"
                   "lea 2(%%rdi), %%rdx\n"
                   "lea 3(%%rdi), %%r8\n"
                   "lea 4(%%rdi), %%r9\n"
                   "lea 5(%%rdi), %%r10\n"
                   "lea 6(%%rdi), %%r11\n"
                   "xchg %%rsi, 64(%%rbx)\n"
                   "mfence\n"
                   "mov %%r11, %%r11\n"
                   "jmp 2f\n"
                   "1: jmp 3f\n"
                   "2: mfence\n"
                   "3: pushfq\n"
                   "popq 128(%%rbx)\n"
                   "mov %%rax, 72(%%rbx)\n"
                   "mov %%rcx, 80(%%rbx)\n"
                   "mov %%rdx, 88(%%rbx)\n"
                   "mov %%r8, 96(%%rbx)\n"
                   "mov %%r9, 104(%%rbx)\n"
                   "mov %%r10, 112(%%rbx)\n"
                   "mov %%r11, 120(%%rbx)\n" ALL(KEEP)
                   :
                   : "b"(&r), "D"(seed)
                   : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                     "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                     "memory", "cc");
  int good = (r.general[7] & mask) == 0x885;
  for (uint64_t i = 0; i < 7; i++) good &= r.general[i] == seed + i;
  for (int i = 0; i < 16; i++)
    for (int lane = 0; lane < LANES; lane++) good &= r.kept[i][lane] == r.vectors[i];
  if (!good) atomic_fetch_add(&changed, 1);
  return 0;
}

API int registers(void) {
#ifdef WIDE
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx")) return 1;
#endif
  atomic_exchange(&changed, 0);
  both(keep_registers);
  return atomic_load(&changed) == 0;
}

static volatile LONG breakpoints;

static LONG CALLBACK see(EXCEPTION_POINTERS *what) {
  if (what->ExceptionRecord->ExceptionCode == EXCEPTION_BREAKPOINT) breakpoints++;
  return EXCEPTION_CONTINUE_SEARCH;
}

// Wants to be the first to know of every exception, and has none of its own.
API int watched(void) {
  breakpoints = 0;
  void *handler = AddVectoredExceptionHandler(1, see);
  int good = registers();
  RemoveVectoredExceptionHandler(handler);
  return good && breakpoints == 0;
}

// A stack of a thread's own making: what lies below the small part that it may use is somebody else's.
enum { OTHERS = 1024, MAY_USE = 96 };
static uint64_t stacks[2][OTHERS + MAY_USE];

static DWORD WINAPI add_on_own_stack(void *me) {
  uint64_t *stack = stacks[(uintptr_t)me], *top = stack + OTHERS + MAY_USE - 2;
  for (int i = 0; i < OTHERS; i++) stack[i] = 42;
  for (int i = 0; i < 3; i++) {
    __asm__ volatile("movq %%rsp, %%rbx\n movq %0, %%rsp\n lock incl (%1)\n nopl 0(%%rax)\n movq %%rbx, %%rsp"
                     :
                     : "r"(top), "r"(&sum)
                     : "rbx", "memory", "cc");
  }
  for (int i = 0; i < OTHERS; i++) {
    if (stack[i] != 42) atomic_fetch_add(&sum, 100);
  }
  return 0;
}

API int own_stacks(void) {
  atomic_store_explicit(&sum, 0, memory_order_relaxed);
  both(add_on_own_stack);
  return atomic_load(&sum) == 6;
}

// A function that ends with its only site, too short for what takes its place: the padding behind it is replaced, too. No
// table names it.
int add_to(atomic_int *where);
__asm__(".p2align 4\n"
        "add_to:\n"
        " lock incl (%rcx)\n"
        " ret\n"
        " .fill 12, 1, 0xcc\n");

static DWORD WINAPI add_at_the_end(void *unused) {
  (void)unused;
  for (int i = 0; i < 2; i++) add_to(&sum);
  return 0;
}

API int short_functions(void) {
  atomic_store_explicit(&sum, 0, memory_order_relaxed);
  both(add_at_the_end);
  return atomic_load(&sum) == 4;
}
