/* Threads that wait in functions of their own, with a variable for a debugger and a secret on the heap. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int answer = 1;
char *on_the_heap;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void first_waits(void) { pthread_mutex_lock(&never); __asm__ volatile(""); }
static __attribute__((noinline)) void second_waits(void) { pause(); __asm__ volatile(""); }
static void *first(void *unused) { first_waits(); return unused; }
static void *second(void *unused) { second_waits(); return unused; }

int main(void) {
  pthread_t one, two;
  answer = 4242;
  /* Across the border of two pages, so that a cut between them would show half of it. */
  char *pages = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  /* Byte by byte: strcpy leaves parts of it in vector registers, which nobody can tell from numbers. */
  volatile char *to = pages + (1 << 19) - 8;
  for (const volatile char *from = getenv("PLANTED"); from && *from; from++) *to++ = *from;
  on_the_heap = pages + (1 << 19);
  pthread_mutex_lock(&never);
  pthread_create(&one, 0, first, 0);
  pthread_create(&two, 0, second, 0);
  puts("ready");
  fflush(stdout);
  pthread_join(one, 0);
  return 0;
}
