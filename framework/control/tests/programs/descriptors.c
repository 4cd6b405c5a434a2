// A thread that waits for a descriptor while it holds the mutex that the other end's thread wants, by name of the argument: a
// deadlock. And descriptors whose other end is, or may be, with another process, which answers: those exit with 0.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], event, with_other[2];
static char block[4096], name[64];
static const char *what;
static int is(const char *other) { return !strcmp(what, other); }

static void *answers(void *unused) {
    pthread_mutex_lock(&guard);
    if (is("counter")) CHECK(eventfd_write(event, 1) == 0);
    else if (is("full")) CHECK(read(ends[0], block, sizeof block) > 0);
    else CHECK(write(ends[1], "x", 1) == 1);
    pthread_mutex_unlock(&guard);
    return unused;
}
static void *nothing(void *unused) { return unused; }
static void on_signal(int number) {
    (void)number;
    if (write(ends[1], "x", 1) != 1) _exit(9);
}

static void send_end(int over, int fd) {
    struct iovec byte = {"x", 1};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct msghdr with = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    CHECK(sendmsg(over, &with, 0) == 1);
}
static int receive_end(int over) {
    char one;
    struct iovec byte = {&one, 1};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control = {0};
    struct msghdr with = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CHECK(recvmsg(over, &with, 0) == 1);
    int fd;
    memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
    return fd;
}

// The process that answers begins before the run, and is no child of the program's.
__attribute__((constructor)) static void begin(int argc, char **argv) {
    what = argc > 1 ? argv[1] : "";
    if (!is("fifo") && !is("passed") && !is("handler")) return;
    snprintf(name, sizeof name, "/tmp/waylay-descriptors-%d", getpid());
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, with_other) == 0);
    if (is("fifo")) CHECK(mkfifo(name, 0600) == 0);
    pid_t program = getpid(), child = fork();
    if (child != 0) {
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        return;
    }
    if (fork() != 0) _exit(0);
    // Whoever began it does not wait for its output.
    close(0), close(1), close(2);
    char begun;
    int to = is("fifo") ? open(name, O_WRONLY) : is("passed") ? receive_end(with_other[1]) : -1;
    if (is("handler") && read(with_other[1], &begun, 1) != 1) _exit(1);
    usleep(30000);
    if (is("handler")) kill(program, SIGUSR1);
    else if (write(to, "x", 1) != 1) _exit(1);
    _exit(0);
}

int main(void) {
    char got;
    pthread_t thread;
    CHECK(pthread_create(&thread, 0, nothing, 0) == 0 && pthread_join(thread, 0) == 0);
    if (is("fifo")) {
        int fd = open(name, O_RDWR);
        CHECK(read(fd, &got, 1) == 1 && unlink(name) == 0);
        return 0;
    }
    if (is("pair")) CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    else CHECK(pipe(ends) == 0);
    if (is("passed")) {
        send_end(with_other[0], ends[1]);
        CHECK(read(ends[0], &got, 1) == 1);
        return 0;
    }
    if (is("handler")) {
        signal(SIGUSR1, on_signal);
        CHECK(write(with_other[0], "x", 1) == 1);
        CHECK(read(ends[0], &got, 1) == 1);
        return 0;
    }
    event = eventfd(0, 0);
    if (is("full")) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        while (write(ends[1], block, sizeof block) > 0) {}
        fcntl(ends[1], F_SETFL, 0);
    }
    pthread_mutex_lock(&guard);
    CHECK(pthread_create(&thread, 0, answers, 0) == 0);
    struct pollfd set[2] = {{ends[0], POLLIN, 0}, {event, POLLIN, 0}};
    eventfd_t value;
    if (is("counter")) CHECK(eventfd_read(event, &value) == 0);
    else if (is("full")) CHECK(write(ends[1], block, sizeof block) > 0);
    else if (is("polled")) CHECK(poll(set, 2, -1) == 1);
    else CHECK(read(ends[0], &got, 1) == 1);
    pthread_mutex_unlock(&guard);
    return pthread_join(thread, 0);
}
