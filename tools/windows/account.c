/* Two threads add to a balance, each in two pieces under a lock. Who sees that the other came in between follows a null
   pointer. Without a C library, and declared here, because there are no headers of Microsoft's where this is built. */
typedef void *HANDLE;
typedef struct {
  void *words[5];
} CRITICAL_SECTION;
#define IMPORTED __declspec(dllimport)
IMPORTED HANDLE CreateThread(void *, unsigned long long, unsigned long (*)(void *), void *, unsigned long, void *);
IMPORTED unsigned long WaitForMultipleObjects(unsigned long, const HANDLE *, int, unsigned long);
IMPORTED void InitializeCriticalSection(CRITICAL_SECTION *);
IMPORTED void EnterCriticalSection(CRITICAL_SECTION *);
IMPORTED void LeaveCriticalSection(CRITICAL_SECTION *);
IMPORTED void ExitProcess(unsigned);

static CRITICAL_SECTION guard;
static int balance;
static int *volatile nowhere;

static inline void expect(int seen) {
  if (balance != seen) *nowhere = seen;
}

static unsigned long deposit(void *argument) {
  (void)argument;
  EnterCriticalSection(&guard);
  int seen = balance;
  LeaveCriticalSection(&guard);
  EnterCriticalSection(&guard);
  expect(seen);
  balance = seen + 1;
  LeaveCriticalSection(&guard);
  return 0;
}

void start(void) {
  HANDLE threads[2];
  InitializeCriticalSection(&guard);
  for (int i = 0; i < 2; i++) threads[i] = CreateThread(0, 0, deposit, 0, 0, 0);
  WaitForMultipleObjects(2, threads, 1, 0xffffffff);
  ExitProcess(0);
}
