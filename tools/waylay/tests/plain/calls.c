/* A text is put into memory that threads share, or taken from there, by one call of the C library or the kernel. The other
   thread does the same, or looks at the text's two ends, one after the other: nothing but these accesses conflicts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
}

static void leave(void) {
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
}

#define BETWEEN __asm__ volatile("" ::: "memory")

static char text[16] = "aaaaaaa";
static FILE *stream;
static int ends[2];

#if defined(READ) || defined(SYSCALL) || defined(READV) || defined(PREAD) || defined(FREAD) || defined(FGETS) || defined(SPRINTF)
static void fill(void) {
#if defined(READ)
    if (read(ends[0], text, 7) != 7) exit(9);
#elif defined(SYSCALL)
    if (syscall(SYS_read, ends[0], text, 7) != 7) exit(9);
#elif defined(READV)
    struct iovec parts[] = {{text, 3}, {text + 3, 4}};
    if (readv(ends[0], parts, 2) != 7) exit(9);
#elif defined(PREAD)
    if (pread(fileno(stream), text, 7, 0) != 7) exit(9);
#elif defined(FREAD)
    if (fread(text, 1, 7, stream) != 7) exit(9);
#elif defined(FGETS)
    if (!fgets(text, sizeof text, stream)) exit(9);
#else
    sprintf(text, "%s%d", "bbbbb", 22);
    text[5] = text[6] = 'b';
#endif
}

static void *one(void *unused) {
    enter();
    fill();
    leave();
    return unused;
}

static void *other(void *unused) {
    enter();
    char first = text[0];
    BETWEEN;
    char last = text[4];
    leave();
    if (first != last) abort();
    return unused;
}
#elif defined(WRITE) || defined(PRINTF) || defined(FWRITE)
/* The other way round: one changes the text in two halves, the other gives it to a call. */
static void *one(void *unused) {
    enter();
    for (int i = 0; i < 7; i++) {
        text[i] = 'b';
        BETWEEN;
    }
    leave();
    return unused;
}

static void *other(void *unused) {
    char seen[16] = "";
    enter();
#if defined(WRITE)
    if (write(ends[1], text, 7) != 7) exit(9);
    leave();
    if (read(ends[0], seen, 7) != 7) exit(9);
#elif defined(PRINTF)
    snprintf(seen, sizeof seen, "%.7s", text);
    leave();
#else
    rewind(stream);
    fwrite(text, 1, 7, stream);
    leave();
    fflush(stream);
    if (pread(fileno(stream), seen, 7, 0) != 7) exit(9);
#endif
    if (seen[0] != seen[6]) abort();
    return unused;
}
#elif defined(LOCALTIME)
static int year(time_t when) {
    enter();
    struct tm *told = gmtime(&when);
    BETWEEN;
    int year = told->tm_year;
    leave();
    return year;
}

static void *one(void *unused) {
    if (year(86400L * 366 * 30) == 70) abort();
    return unused;
}

static void *other(void *unused) {
    if (year(86400L * 20) != 70) abort();
    return unused;
}
#elif defined(STRTOK)
static void *one(void *unused) {
    char words[] = "a b c";
    int count = 0;
    enter();
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) count++;
    leave();
    if (count != 3) abort();
    return unused;
}
#define other one
#elif defined(SETENV)
static void *one(void *unused) {
    enter();
    setenv("COLOUR", "red", 1);
    unsetenv("COLOUR");
    leave();
    return unused;
}

static void *other(void *unused) {
    enter();
    int there = getenv("COLOUR") != NULL;
    leave();
    if (there) abort();
    return unused;
}
#endif

int main(void) {
    char bytes[] = "bbbbbbb";
    stream = tmpfile();
    if (!stream || fwrite(bytes, 1, 7, stream) != 7 || fflush(stream) || pipe(ends)) return 9;
    rewind(stream);
#if defined(READ) || defined(SYSCALL) || defined(READV)
    if (write(ends[1], bytes, 7) != 7) return 9;
#endif
    pthread_t first, second;
    pthread_create(&first, NULL, one, NULL);
    pthread_create(&second, NULL, other, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
