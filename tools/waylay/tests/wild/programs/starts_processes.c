// clean
#include "wild.h"
static void *starts(void *x) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (x) _exit(3);
        execl("/bin/echo", "echo", "hello", (char *)0);
        _exit(4);
    }
    assert(waitpid(child, &status, 0) == child);
    assert(WEXITSTATUS(status) == (x ? 3 : 0));
    return 0;
}
int main(void) {
    run(2, starts);
    assert(system("true") == 0);
    FILE *pipe = popen("echo word", "r");
    char line[9];
    assert(fgets(line, sizeof line, pipe));
    assert(pclose(pipe) == 0);
    return 0;
}
