// Files, streams, memory, random bytes, processes, and the ways to end one.
#include "case.h"
#include <aio.h>
#include <malloc.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char path[100], other[100];
static void names(void) {
    snprintf(path, sizeof path, "/tmp/conformance-%d", getpid());
    snprintf(other, sizeof other, "/tmp/conformance-%d-other", getpid());
}
CASE(descriptors_of_files, "open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 creat creat64 access stat fstat lstat ftruncate ftruncate64 unlink") {
    names();
    struct stat status;
    FAILS(open("/no/such/file", O_RDONLY), ENOENT);
    FAILS(open64("/no/such/file", O_RDONLY), ENOENT);
    FAILS(openat(AT_FDCWD, "/no/such/file", O_RDONLY), ENOENT);
    FAILS(openat64(999, "file", O_RDONLY), EBADF);
    int checked_open(const char *, int) __asm__("__open_2"), checked_open64(const char *, int) __asm__("__open64_2");
    int checked_openat(int, const char *, int) __asm__("__openat_2");
    int checked_openat64(int, const char *, int) __asm__("__openat64_2");
    FAILS(checked_open("/no/such/file", O_RDONLY), ENOENT);
    FAILS(checked_open64("/no/such/file", O_RDONLY), ENOENT);
    FAILS(checked_openat(AT_FDCWD, "/no/such/file", O_RDONLY), ENOENT);
    FAILS(checked_openat64(999, "file", O_RDONLY), EBADF);
    FAILS(creat64("/no/such/file", 0600), ENOENT);
    FAILS(access("/no/such/file", R_OK), ENOENT);
    FAILS(stat("/no/such/file", &status), ENOENT);
    FAILS(lstat("/no/such/file", &status), ENOENT);
    FAILS(fstat(999, &status), EBADF);
    int fd = creat(path, 0600);
    HOLDS(fd >= 0);
    IS(ftruncate(fd, 10), 0);
    IS(ftruncate64(fd, 20), 0);
    FAILS(ftruncate(fd, -1), EINVAL);
    IS(fstat(fd, &status), 0);
    IS(status.st_size, 20);
    FAILS(open(path, O_CREAT | O_EXCL, 0600), EEXIST);
    close(fd);
    IS(unlink(path), 0);
    FAILS(unlink(path), ENOENT);
}
CASE(names_of_files, "mkdir rmdir rename remove") {
    names();
    IS(mkdir(path, 0700), 0);
    FAILS(mkdir(path, 0700), EEXIST);
    IS(rename(path, other), 0);
    FAILS(rename(path, other), ENOENT);
    IS(rmdir(other), 0);
    FAILS(rmdir(other), ENOENT);
    FAILS(remove(other), ENOENT);
}
static int prints(FILE *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = vfprintf(to, format, list);
    va_end(list);
    return result;
}
static int prints_nothing(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = vprintf(format, list);
    va_end(list);
    return result;
}
CASE(writing_streams, "fopen fopen64 fdopen freopen fclose fflush fprintf vfprintf fputs fputc putc fwrite dprintf fseek ftell rewind") {
    names();
    HOLDS(fopen("/no/such/file", "r") == 0);
    HOLDS(fopen64("/no/such/file", "r") == 0);
    FILE *file = fopen(path, "w+");
    IS(fprintf(file, "%d ", 12), 3);
    IS(prints(file, "%d\n", 34), 3);
    HOLDS(fputs("line\n", file) >= 0);
    IS(fputc('a', file), 'a');
    IS(putc('b', file), 'b');
    IS(fwrite("cd", 1, 2, file), 2);
    IS(fflush(file), 0);
    IS(ftell(file), 15);
    IS(fseek(file, 0, SEEK_SET), 0);
    FAILS(fseek(file, 0, 99), EINVAL);
    rewind(file);
    IS(ftell(file), 0);
    IS(fclose(file), 0);
    file = fdopen(open(path, O_RDWR), "r");
    HOLDS(file != 0);
    file = freopen(path, "r", file);
    HOLDS(file != 0);
    IS(fclose(file), 0);
    HOLDS(fdopen(999, "r") == 0);
    FAILS(dprintf(999, "x"), EBADF);
    unlink(path);
}
CASE(reading_streams, "fread fgets fgetc getc getline ungetc fscanf __isoc99_fscanf flockfile ftrylockfile funlockfile __fread_chk __fgets_chk freopen64") {
    names();
    FILE *file = fopen(path, "w+");
    fputs("12 ab\nsecond\nx", file);
    rewind(file);
    int number = 0;
    char text[20], *line = 0;
    size_t size = 0;
    int scans(FILE *, const char *, ...) __asm__("fscanf");
    IS(fscanf(file, "%d", &number), 1);
    IS(number, 12);
    IS(scans(file, "%19s", text), 1);
    IS(strcmp(text, "ab"), 0);
    IS(fgetc(file), '\n');
    IS(ungetc('\n', file), '\n');
    IS(getc(file), '\n');
    IS(getline(&line, &size, file), 7);
    free(line);
    IS(fread(text, 1, 20, file), 1);
    HOLDS(fgets(text, 20, file) == 0);
    IS(fgetc(file), EOF);
    rewind(file);
    size_t checked_fread(void *, size_t, size_t, size_t, FILE *) __asm__("__fread_chk");
    char *checked_fgets(char *, size_t, int, FILE *) __asm__("__fgets_chk");
    IS(checked_fread(text, 20, 1, 3, file), 3);
    HOLDS(checked_fgets(text, 20, 20, file) == text);
    IS(strcmp(text, "ab\n"), 0);
    HOLDS((file = freopen64(path, "r", file)) != 0);
    IS(fgetc(file), '1');
    flockfile(file);
    IS(ftrylockfile(file), 0);
    funlockfile(file), funlockfile(file);
    fclose(file);
    unlink(path);
}
int checked_printf(int, const char *, ...) __asm__("__printf_chk");
int checked_fprintf(FILE *, int, const char *, ...) __asm__("__fprintf_chk");
int checked_vprintf(int, const char *, va_list) __asm__("__vprintf_chk");
int checked_vfprintf(FILE *, int, const char *, va_list) __asm__("__vfprintf_chk");
static int checked(bool to_file, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int result = to_file ? checked_vfprintf(stdout, 1, format, list) : checked_vprintf(1, format, list);
    va_end(list);
    return result;
}
CASE(standard_output, "printf vprintf puts putchar perror __printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk __dprintf_chk") {
    int checked_dprintf(int, int, const char *, ...) __asm__("__dprintf_chk");
    FAILS(checked_dprintf(999, 1, "%s", "x"), EBADF);
    IS(printf("%s", "x"), 1);
    IS(prints_nothing("%s", "x"), 1);
    HOLDS(puts("") >= 0);
    IS(putchar('\n'), '\n');
    IS(checked_printf(1, "%d\n", 1), 2);
    IS(checked_fprintf(stdout, 1, "%d\n", 1), 2);
    IS(checked(false, "%d\n", 1), 2);
    IS(checked(true, "%d\n", 1), 2);
    errno = 0;
    perror("no error");
}
int scans_old(const char *, ...) __asm__("scanf");
CASE(standard_input, "getchar scanf __isoc99_scanf") {
    int number;
    IS(getchar(), EOF);
    IS(scans_old("%d", &number), EOF);
    IS(scanf("%d", &number), EOF);
}
CASE(memory_of_the_heap, "malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign valloc pvalloc") {
    char *block = malloc(10);
    memset(block, 7, 10);
    block = realloc(block, 1000);
    IS(block[9], 7);
    block = reallocarray(block, 10, 200);
    IS(block[9], 7);
    volatile size_t much = SIZE_MAX / 2;
    free(block);
    HOLDS(reallocarray(0, much, 4) == 0);
    HOLDS(malloc(much) == 0);
    HOLDS(calloc(much, 4) == 0);
    block = calloc(4, 4);
    IS(block[15], 0);
    free(block), free(0);
    void *aligned = 0;
    IS(posix_memalign(&aligned, 3, 8), EINVAL);
    IS(posix_memalign(&aligned, 256, 8), 0);
    IS((unsigned long)aligned % 256, 0);
    free(aligned);
    void *(*makers[])(size_t, size_t) = {aligned_alloc, memalign};
    for (int i = 0; i < 2; i++) {
        aligned = makers[i](512, 1024);
        IS((unsigned long)aligned % 512, 0);
        free(aligned);
    }

    void *(*pages[])(size_t) = {valloc, pvalloc};
    for (int i = 0; i < 2; i++) {
        aligned = pages[i](10);
        IS((unsigned long)aligned % 4096, 0);
        free(aligned);
    }
}
CASE(memory_of_the_kernel, "mmap mmap64 mprotect munmap") {
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(pages != MAP_FAILED);
    pages[0] = 1;
    IS(mprotect(pages, 4096, PROT_READ), 0);
    FAILS(mprotect(pages + 1, 4096, PROT_READ), EINVAL);
    IS(munmap(pages, 8192), 0);
    FAILS(munmap(pages + 1, 4096), EINVAL);
    FAILS(mmap(0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
    FAILS(mmap64(0, 4096, PROT_READ, MAP_PRIVATE, -1, 0), EBADF);
}
CASE(memory_that_grows_and_moves, "mremap") {
    char *pages = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HOLDS(pages != MAP_FAILED);
    pages[7] = 42;
    pages = mremap(pages, 4096, 65536, MREMAP_MAYMOVE);
    HOLDS(pages != MAP_FAILED);
    IS(pages[7], 42);
    pages[65535] = 1;
    IS(mremap(pages, 65536, 4096, 0), pages);
    FAILS(mremap(pages + 1, 4096, 8192, MREMAP_MAYMOVE), EINVAL);
    FAILS(mremap(pages, 4096, 0, 0), EINVAL);
    IS(munmap(pages, 4096), 0);
}
CASE(random_bytes, "getrandom getentropy arc4random arc4random_buf arc4random_uniform") {
    char bytes[300];
    IS(getrandom(bytes, 16, 0), 16);
    FAILS(getrandom(bytes, 16, 99), EINVAL);
    IS(getentropy(bytes, 16), 0);
    FAILS(getentropy(bytes, 257), EIO);
    arc4random();
    arc4random_buf(bytes, 16);
    HOLDS(arc4random_uniform(10) < 10);
}
CASE(identities, "setuid setgid setreuid setregid setresuid setresgid gettid") {
    IS(gettid(), getpid());
    IS(setuid(getuid()), 0);
    IS(setgid(getgid()), 0);
    IS(setreuid(-1, -1), 0);
    IS(setregid(-1, -1), 0);
    IS(setresuid(-1, -1, -1), 0);
    IS(setresgid(-1, -1, -1), 0);
}
CASE(waiting_for_nobody, "wait wait3 wait4 waitid waitpid") {
    int status;
    struct rusage usage;
    siginfo_t information;
    FAILS(wait(&status), ECHILD);
    FAILS(wait3(&status, 0, &usage), ECHILD);
    FAILS(wait4(-1, &status, 0, &usage), ECHILD);
    FAILS(waitpid(-1, &status, 0), ECHILD);
    FAILS(waitpid(-1, &status, -1), EINVAL);
    FAILS(waitid(P_ALL, 0, &information, WEXITED), ECHILD);
}
static pid_t child(int status) {
    pid_t process = fork();
    if (process == 0) _exit(status);
    HOLDS(process > 0);
    return process;
}
CASE(waiting_for_children, "fork waitpid wait wait3 wait4 waitid system popen pclose") {
    int status = 0;
    siginfo_t information;
    pid_t process = child(3);
    IS(waitpid(process, &status, 0), process);
    IS(WEXITSTATUS(status), 3);
    process = child(4);
    IS(wait(&status), process);
    IS(WEXITSTATUS(status), 4);
    process = child(5);
    IS(wait3(&status, 0, 0), process);
    process = child(6);
    IS(wait4(process, &status, 0, 0), process);
    process = child(7);
    IS(waitid(P_PID, process, &information, WEXITED), 0);
    IS(information.si_status, 7);
    IS(WEXITSTATUS(system("exit 8")), 8);
    FILE *stream = popen("exit 9", "r");
    IS(WEXITSTATUS(pclose(stream)), 9);
}

CASE(other_ways_to_start_processes, "vfork posix_spawn posix_spawnp") {
    int status = 0;
    pid_t process = vfork();
    if (process == 0) _exit(3);
    IS(waitpid(process, &status, 0), process);
    IS(WEXITSTATUS(status), 3);
    char *words[] = {"sh", "-c", "exit 4", 0};
    IS(posix_spawn(&process, "/bin/sh", 0, 0, words, environ), 0);
    IS(waitpid(process, &status, 0), process);
    IS(WEXITSTATUS(status), 4);
    IS(posix_spawnp(&process, "sh", 0, 0, words, environ), 0);
    IS(waitpid(process, &status, 0), process);
    IS(WEXITSTATUS(status), 4);
}
CASE(asynchronous_requests, "aio_read aio_write aio_read64 aio_write64 aio_fsync aio_fsync64 lio_listio lio_listio64") {
    struct aiocb request = {.aio_fildes = 0, .aio_reqprio = -1};
    FAILS(aio_fsync(12345, &request), EINVAL);
    struct aiocb64 wide = {.aio_fildes = -1};
    FAILS(aio_fsync64(12345, &wide), EINVAL);
    FAILS(lio_listio(12345, 0, 0, 0), EINVAL);
    FAILS(lio_listio64(12345, 0, 0, 0), EINVAL);
    IS(aio_read(&request), -1);
    IS(aio_write(&request), -1);
    IS(aio_read64((struct aiocb64 *)&request), -1);
    IS(aio_write64((struct aiocb64 *)&request), -1);
}

ONLY(exit_ends, "exit") { exit(11); }
ONLY(underscore_exit_ends, "_exit") { _exit(12); }
ONLY(capital_exit_ends, "_Exit") { _Exit(13); }
ONLY(quick_exit_ends, "quick_exit") { quick_exit(14); }
