/* Loads the library named by its argument and blocks in it. */
#include <dlfcn.h>
#include <stdio.h>

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
    void (*call_back)(void (*)(void)) = library ? (void (*)(void (*)(void)))dlsym(library, "call_back") : 0;
    if (!call_back) return 1;
    call_back(ready);
    return 0;
}
