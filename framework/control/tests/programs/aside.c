// Prints whose pthread_mutex_lock this program calls: "libc" or "library".
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

int main(void) {
    int (*volatile called)(pthread_mutex_t *) = pthread_mutex_lock;
    Dl_info info;
    CHECK(dladdr((void *)called, &info));
    puts(strstr(info.dli_fname, "libwaylay_control") ? "library" : "libc");
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    return 0;
}
