/* Traces the process whose number is given, and keeps doing so. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count < 2 || ptrace(PTRACE_SEIZE, atoi(arguments[1]), 0, 0) != 0) return 1;
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
