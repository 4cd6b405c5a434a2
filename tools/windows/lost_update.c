/* Two threads add one each to a sum, with plain accesses: between reading and writing there is nothing but the access. */
#include <windows.h>

static int sum;

static DWORD WINAPI add(void *unused) {
  (void)unused;
  sum = sum + 1;
  return 0;
}

int main(void) {
  HANDLE threads[2];
  for (int i = 0; i < 2; i++) threads[i] = CreateThread(NULL, 0, add, NULL, 0, NULL);
  WaitForMultipleObjects(2, threads, TRUE, INFINITE);
  return sum == 2 ? 0 : 3;
}
