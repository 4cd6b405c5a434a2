/* What only Windows can do wrong: its exceptions, its ways to end a process, the checks of its C library.
   Included by faults.c on Windows. */
#include <windows.h>

/* seh-exception: an exception of the program's own that nobody handles. */
static int32_t raises(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  RaiseException(0xe0574c01, 0, 0, NULL);
  return WAYLAY_OK;
}

/* divide: an exception of the processor. */
static int32_t divides(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  volatile int nothing = 0;
  volatile int result = 7 / nothing;
  (void)result;
  return WAYLAY_OK;
}

/* handled-exception: raised, and handled by a vectored handler as programs do it; nothing is wrong. */
static LONG CALLBACK goes_on(EXCEPTION_POINTERS *pointers) {
  return pointers->ExceptionRecord->ExceptionCode == 0xe0574c02 ? EXCEPTION_CONTINUE_EXECUTION
                                                                : EXCEPTION_CONTINUE_SEARCH;
}

static int32_t raises_and_handles(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  void *handler = AddVectoredExceptionHandler(1, goes_on);
  RaiseException(0xe0574c02, 0, 0, NULL);
  RemoveVectoredExceptionHandler(handler);
  return WAYLAY_OK;
}

/* invalid-parameter, pure-call: the checks of the runtime of Visual Studio, which this plugin brings along as one that was
   built there would. */
static HMODULE runtime;

static __attribute__((constructor)) void load_runtime(void) { runtime = LoadLibraryA("ucrtbase.dll"); }

static int32_t closes_nothing(fault *self, waylay_context *worker) {
  int (*close)(void *) = (int (*)(void *))(void *)GetProcAddress(runtime, "fclose");
  if (close == NULL) {
    waylay_fail(self->services, worker, "ucrtbase.dll has no fclose");
    return WAYLAY_FAILED;
  }
  close(NULL);
  return WAYLAY_OK;
}

static int32_t calls_nothing(fault *self, waylay_context *worker) {
  void (*call)(void) = (void (*)(void))(void *)GetProcAddress(runtime, "_purecall");
  if (call == NULL) {
    waylay_fail(self->services, worker, "ucrtbase.dll has no _purecall");
    return WAYLAY_FAILED;
  }
  call();
  return WAYLAY_OK;
}

/* fast-fail: ends the process without asking anybody in it. */
static int32_t fails_fast(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  __asm__ volatile("int $0x29" : : "c"(7));
  return WAYLAY_OK;
}

/* heap-corruption: the heap of the system is told that its own records are broken, as it does when it finds them so. */
static int32_t corrupts(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  RaiseException(0xc0000374, EXCEPTION_NONCONTINUABLE, 0, NULL);
  return WAYLAY_OK;
}

/* exit-process, terminate-process: the system's own ways to end a process, past all handlers. */
static int32_t exits_process(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  ExitProcess(7);
}

static int32_t terminates_process(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  TerminateProcess(GetCurrentProcess(), 8);
  return WAYLAY_OK;
}

/* thread-crash: on a thread that the test started. */
static DWORD WINAPI crashes_there(void *argument) {
  *(volatile int *)argument = 1;
  return 0;
}

static int32_t crashes_on_a_thread(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  HANDLE thread = CreateThread(NULL, 0, crashes_there, (void *)16, 0, NULL);
  if (thread == NULL) return WAYLAY_FAILED;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  return WAYLAY_OK;
}

/* thread-overflow: a stack of such a thread ends. */
static DWORD WINAPI overflows_there(void *argument) {
  (void)argument;
  return (DWORD)descend(0);
}

static int32_t overflows_on_a_thread(fault *self, waylay_context *worker) {
  (void)self;
  (void)worker;
  HANDLE thread = CreateThread(NULL, 0, overflows_there, NULL, 0, NULL);
  if (thread == NULL) return WAYLAY_FAILED;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  return WAYLAY_OK;
}

#define WINDOWS_ENTRIES                                                                     \
  {"seh-exception", "raises an exception that nobody handles", raises},                     \
  {"divide", "divides by zero", divides},                                                   \
  {"handled-exception", "raises an exception and handles it", raises_and_handles},          \
  {"invalid-parameter", "gives the C library a null pointer", closes_nothing},              \
  {"pure-call", "calls what stands in for pure virtual functions", calls_nothing},          \
  {"fast-fail", "ends the process with __fastfail", fails_fast},                            \
  {"heap-corruption", "raises what a broken heap raises", corrupts},                        \
  {"exit-process", "calls ExitProcess", exits_process},                                     \
  {"terminate-process", "calls TerminateProcess on itself", terminates_process},            \
  {"thread-crash", "crashes on a thread that it started", crashes_on_a_thread},             \
  {"thread-overflow", "ends the stack of a thread that it started", overflows_on_a_thread},
