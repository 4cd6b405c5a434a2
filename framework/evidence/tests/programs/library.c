/* A library whose file is deleted while it is in use. */
#include <unistd.h>

volatile int library_sink;

__attribute__((noinline)) void block_in_library(void) { for (;;) { pause(); library_sink++; } }
__attribute__((noinline)) void call_back(void (*ready)(void)) { ready(); block_in_library(); library_sink++; }
