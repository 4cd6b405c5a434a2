// A processor on which programs cannot set their FS base: what the loader's table would say there.
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type) {
    (void)type;
    return 0;
}
