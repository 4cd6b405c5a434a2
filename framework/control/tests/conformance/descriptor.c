// Reading, writing and waiting for descriptors.
#include "case.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int ends[2], listener, epoll, event;
static atomic_int done;
static char bytes[16];
static struct iovec vector = {bytes, sizeof bytes};
static struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

static void open_pipe(void) { IS(pipe(ends), 0); }
static void open_sockets(void) { IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
static void open_listener(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    IS(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    IS(listen(listener, 4), 0);
}
static int connects(void) {
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    IS(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    IS(connect(fd, (struct sockaddr *)&address, len), 0);
    return fd;
}
static void fill(int fd) {
    static char block[4096];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, block, sizeof block) > 0) {}
    fcntl(fd, F_SETFL, 0);
}
static void drain(int fd) {
    static char block[4096];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (read(fd, block, sizeof block) > 0) {}
    fcntl(fd, F_SETFL, 0);
}
static void close_both(void) { close(ends[0]), close(ends[1]); }

static int reads(void) { return read(ends[0], bytes, sizeof bytes); }
static int reads_vector(void) { return readv(ends[0], &vector, 1); }
static int receives(void) { return recv(ends[0], bytes, sizeof bytes, 0); }
static int receives_from(void) { return recvfrom(ends[0], bytes, sizeof bytes, 0, 0, 0); }
static int receives_message(void) { return recvmsg(ends[0], &message, 0); }
static int writes(void) { return write(ends[1], bytes, sizeof bytes); }
static int writes_vector(void) { return writev(ends[1], &vector, 1); }
static int sends(void) { return send(ends[1], bytes, sizeof bytes, 0); }
static int sends_to(void) { return sendto(ends[1], bytes, sizeof bytes, 0, 0, 0); }
static int sends_message(void) { return sendmsg(ends[1], &message, 0); }
static int accepts(void) {
    int fd = accept(listener, 0, 0);
    return fd < 0 ? -1 : close(fd);
}
static int accepts_with_flags(void) {
    int fd = accept4(listener, 0, 0, SOCK_CLOEXEC);
    return fd < 0 ? -1 : close(fd);
}
static int reads_event(void) {
    unsigned long value;
    return eventfd_read(event, &value);
}
static int writes_event(void) { return eventfd_write(event, 1); }
static int polls(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    return poll(&one, 1, -1);
}
static int polls_with_mask(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    sigset_t none = set_of(0);
    return ppoll(&one, 1, 0, &none);
}
static int selects(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    return select(ends[0] + 1, &set, 0, 0, 0);
}
static int selects_with_mask(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    sigset_t none = set_of(0);
    return pselect(ends[0] + 1, &set, 0, 0, 0, &none);
}
static void open_epoll(void) {
    open_pipe();
    epoll = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN};
    IS(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &in), 0);
}
static struct epoll_event seen;
static int waits_at_epoll(void) { return epoll_wait(epoll, &seen, 1, -1); }
static int waits_at_epoll_with_mask(void) {
    sigset_t none = set_of(0);
    return epoll_pwait(epoll, &seen, 1, -1, &none);
}
static int waits_at_epoll_precisely(void) {
    sigset_t none = set_of(0);
    return epoll_pwait2(epoll, &seen, 1, 0, &none);
}

static int (*call)(void);
static int result, error;
static void *calls(void *unused) {
    errno = 0;
    result = call();
    error = errno;
    done = 1;
    return unused;
}
static void interrupted(int (*what)(void), int flags) {
    handle(SIGUSR1, flags);
    call = what;
    done = 0;
    pthread_t thread = start(calls, 0);
    poke(thread, SIGUSR1, &done);
    joined(thread);
    IS(result, -1);
    IS(error, EINTR);
}
static void restarted(int (*what)(void), void (*end)(void), int wanted) {
    handle(SIGUSR1, SA_RESTART);
    call = what;
    done = 0;
    pthread_t thread = start(calls, 0);
    poke_times(thread, SIGUSR1, 3);
    IS(done, 0);
    end();
    joined(thread);
    IS(result, wanted);
}
static void cancelled(int (*what)(void)) {
    call = what;
    pthread_t thread = start(calls, 0);
    usleep(500);
    IS(pthread_cancel(thread), 0);
    HOLDS(joined(thread) == PTHREAD_CANCELED);
}
static void writes_one(void) { IS(write(ends[1], "x", 1), 1); }
static void drains(void) { drain(ends[0]); }
static void comes(void) { close(connects()); }
static void gives_event(void) { IS(eventfd_write(event, 1), 0); }
static void takes_event(void) {
    unsigned long value;
    IS(read(event, &value, 8), 8);
}

#define WAITS(name, functions, open, prepare, call, end, wanted, close)                                       \
    CASE(name##_waits, functions) {                                                                           \
        open, prepare, restarted(call, end, wanted), close;                                                   \
    }                                                                                                         \
    CASE(name##_is_interrupted, functions) {                                                                  \
        open, prepare, interrupted(call, 0), close;                                                           \
    }                                                                                                         \
    CASE(name##_is_a_cancellation_point, functions " pthread_cancel") {                                       \
        open, prepare, cancelled(call), close;                                                                \
    }
#define NOTHING (void)0
WAITS(read, "read", open_pipe(), NOTHING, reads, writes_one, 1, close_both())
WAITS(readv, "readv", open_pipe(), NOTHING, reads_vector, writes_one, 1, close_both())
WAITS(recv, "recv", open_sockets(), NOTHING, receives, writes_one, 1, close_both())
WAITS(recvfrom, "recvfrom", open_sockets(), NOTHING, receives_from, writes_one, 1, close_both())
WAITS(recvmsg, "recvmsg", open_sockets(), NOTHING, receives_message, writes_one, 1, close_both())
WAITS(write, "write", open_pipe(), fill(ends[1]), writes, drains, 16, close_both())
WAITS(writev, "writev", open_pipe(), fill(ends[1]), writes_vector, drains, 16, close_both())
WAITS(send, "send", open_sockets(), fill(ends[1]), sends, drains, 16, close_both())
WAITS(sendto, "sendto", open_sockets(), fill(ends[1]), sends_to, drains, 16, close_both())
WAITS(sendmsg, "sendmsg", open_sockets(), fill(ends[1]), sends_message, drains, 16, close_both())
WAITS(accept, "accept connect", open_listener(), NOTHING, accepts, comes, 0, close(listener))
WAITS(accept4, "accept4", open_listener(), NOTHING, accepts_with_flags, comes, 0, close(listener))
WAITS(eventfd_read, "eventfd_read eventfd_write", event = eventfd(0, 0), NOTHING, reads_event, gives_event, 0, close(event))
WAITS(eventfd_write, "eventfd_write", event = eventfd(0, 0), eventfd_write(event, -2ul), writes_event, takes_event, 0, close(event))

// What a program calls that is compiled with _FORTIFY_SOURCE.
ssize_t checked_read(int, void *, size_t, size_t) __asm__("__read_chk");
ssize_t checked_pread(int, void *, size_t, off_t, size_t) __asm__("__pread_chk");
ssize_t checked_pread64(int, void *, size_t, off_t, size_t) __asm__("__pread64_chk");
ssize_t checked_recv(int, void *, size_t, size_t, int) __asm__("__recv_chk");
ssize_t checked_recvfrom(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *) __asm__("__recvfrom_chk");
int checked_poll(struct pollfd *, nfds_t, int, size_t) __asm__("__poll_chk");
int checked_ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t) __asm__("__ppoll_chk");
static struct mmsghdr messages[2];
static void prepare_messages(void) {
    for (int i = 0; i < 2; i++) messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};
}
static int reads_checked(void) { return checked_read(ends[0], bytes, sizeof bytes, sizeof bytes); }
static int receives_checked(void) { return checked_recv(ends[0], bytes, sizeof bytes, sizeof bytes, 0); }
static int receives_from_checked(void) { return checked_recvfrom(ends[0], bytes, sizeof bytes, sizeof bytes, 0, 0, 0); }
static int receives_messages(void) { return recvmmsg(ends[0], messages, 1, 0, 0); }
static int sends_messages(void) { return sendmmsg(ends[1], messages, 1, 0); }
static int polls_checked(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    return checked_poll(&one, 1, -1, sizeof one);
}
static int polls_with_mask_checked(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    sigset_t none = set_of(0);
    return checked_ppoll(&one, 1, 0, &none, sizeof one);
}
WAITS(read_chk, "__read_chk", open_pipe(), NOTHING, reads_checked, writes_one, 1, close_both())
WAITS(recv_chk, "__recv_chk", open_sockets(), NOTHING, receives_checked, writes_one, 1, close_both())
WAITS(recvfrom_chk, "__recvfrom_chk", open_sockets(), NOTHING, receives_from_checked, writes_one, 1, close_both())
WAITS(recvmmsg, "recvmmsg", open_sockets(), prepare_messages(), receives_messages, writes_one, 1, close_both())
WAITS(sendmmsg, "sendmmsg", open_sockets(), (fill(ends[1]), prepare_messages()), sends_messages, drains, 1, close_both())
static void *too_long(void *what) {
    static struct pollfd one[2];
    switch (*(int *)what) {
        case 0: checked_read(ends[0], bytes, 17, 16); break;
        case 1: checked_recv(ends[0], bytes, 17, 16, 0); break;
        case 2: checked_recvfrom(ends[0], bytes, 17, 16, 0, 0, 0); break;
        case 3: checked_poll(one, 2, -1, sizeof one[0]); break;
        case 4: checked_ppoll(one, 2, 0, 0, sizeof one[0]); break;
        case 5: checked_pread(ends[0], bytes, 17, 0, 16); break;
        case 6: checked_pread64(ends[0], bytes, 17, 0, 16); break;
    }
    return 0;
}
static int too_long_for;
static void ends_with_a_message(int signal) {
    (void)signal;
    _exit(7);
}
#define TOO_LONG(name, functions, number)                \
    ONLY(name, functions) {                              \
        open_sockets();                                  \
        signal(SIGABRT, ends_with_a_message);            \
        close(2);                                        \
        too_long_for = number;                           \
        too_long(&too_long_for);                         \
    }
TOO_LONG(read_chk_checks, "__read_chk", 0)
TOO_LONG(recv_chk_checks, "__recv_chk", 1)
TOO_LONG(recvfrom_chk_checks, "__recvfrom_chk", 2)
TOO_LONG(poll_chk_checks, "__poll_chk", 3)
TOO_LONG(ppoll_chk_checks, "__ppoll_chk", 4)
CASE(pread_is_checked, "__pread_chk __pread64_chk") {
    open_pipe();
    FAILS(checked_pread(ends[0], bytes, 1, 0, sizeof bytes), ESPIPE);
    FAILS(checked_pread64(ends[0], bytes, 1, 0, sizeof bytes), ESPIPE);
    close_both();
}
CASE(several_messages_at_once, "recvmmsg sendmmsg") {
    open_sockets();
    prepare_messages();
    IS(sendmmsg(ends[1], messages, 2, 0), 2);
    IS(messages[1].msg_len, sizeof bytes);
    IS(recvmmsg(ends[0], messages, 2, 0, 0), 2);
    IS(messages[1].msg_len, sizeof bytes);
    IS(sendmmsg(ends[1], messages, 1, 0), 1);
    IS(recvmmsg(ends[0], messages, 2, MSG_WAITFORONE, 0), 1);
    FAILS(recvmmsg(ends[0], messages, 2, MSG_DONTWAIT, 0), EAGAIN);
    struct timespec bad = {0, 2000000000}, past = {0, 0};
    FAILS(recvmmsg(ends[0], messages, 2, 0, &bad), EINVAL);
    IS(sendmmsg(ends[1], messages, 1, 0), 1);
    IS(recvmmsg(ends[0], messages, 2, 0, &past), 1);
    FAILS(sendmmsg(999, messages, 1, 0), EBADF);
    FAILS(recvmmsg(999, messages, 1, 0, 0), EBADF);
    close_both();
    open_pipe();
    FAILS(sendmmsg(ends[1], messages, 1, 0), ENOTSOCK);
    FAILS(recvmmsg(ends[0], messages, 1, 0, 0), ENOTSOCK);
    close_both();
}
CASE(ends_are_made, "pipe pipe2 socketpair eventfd") {
    IS(pipe2(ends, O_CLOEXEC), 0);
    IS(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    close_both();
    FAILS(pipe2(ends, -1), EINVAL);
    FAILS(socketpair(AF_INET, SOCK_STREAM, 0, ends), EOPNOTSUPP);
    FAILS(eventfd(0, -1), EINVAL);
    open_pipe(), close_both();
}
CASE(descriptors_go_along_with_messages, "sendmsg recvmsg") {
    int pair[2], sent[2];
    IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    IS(pipe(sent), 0);
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr with = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &sent[0], sizeof(int));
    IS(sendmsg(pair[0], &with, 0), sizeof bytes);
    IS(recvmsg(pair[1], &with, 0), sizeof bytes);
    int got;
    memcpy(&got, CMSG_DATA(&control.head), sizeof got);
    IS(write(sent[1], "x", 1), 1);
    IS(read(got, bytes, 1), 1);
    close(got), close(sent[0]), close(sent[1]), close(pair[0]), close(pair[1]);
}

#define POLLS(name, functions, open, call, close)                                            \
    CASE(name##_is_interrupted, functions) { open, interrupted(call, 0), close; }            \
    CASE(name##_is_not_restarted, functions) { open, interrupted(call, SA_RESTART), close; } \
    CASE(name##_is_a_cancellation_point, functions " pthread_cancel") { open, cancelled(call), close; } \
    CASE(name##_sees_what_comes, functions) {                                                \
        open;                                                                                \
        writes_one();                                                                        \
        IS(call(), 1);                                                                       \
        close;                                                                               \
    }
POLLS(poll, "poll", open_pipe(), polls, close_both())
POLLS(ppoll, "ppoll", open_pipe(), polls_with_mask, close_both())
POLLS(poll_chk, "__poll_chk", open_pipe(), polls_checked, close_both())
POLLS(ppoll_chk, "__ppoll_chk", open_pipe(), polls_with_mask_checked, close_both())
POLLS(select, "select", open_pipe(), selects, close_both())
POLLS(pselect, "pselect", open_pipe(), selects_with_mask, close_both())
POLLS(epoll_wait, "epoll_wait", open_epoll(), waits_at_epoll, (close_both(), close(epoll)))
POLLS(epoll_pwait, "epoll_pwait", open_epoll(), waits_at_epoll_with_mask, (close_both(), close(epoll)))
POLLS(epoll_pwait2, "epoll_pwait2", open_epoll(), waits_at_epoll_precisely, (close_both(), close(epoll)))

#define MASKED(name, functions, call)                                           \
    CASE(name##_lets_pending_signals_through, functions) {                      \
        open_epoll();                                                           \
        handle(SIGUSR1, SA_RESTART);                                            \
        block(SIG_BLOCK, SIGUSR1);                                              \
        raise(SIGUSR1);                                                         \
        FAILS(call(), EINTR);                                                   \
        IS(handled, 1);                                                         \
        raise(SIGUSR1);                                                         \
        IS(handled, 1);                                                         \
        block(SIG_UNBLOCK, SIGUSR1);                                            \
        close_both(), close(epoll);                                             \
    }
MASKED(ppoll, "ppoll", polls_with_mask)
MASKED(pselect, "pselect", selects_with_mask)
MASKED(epoll_pwait, "epoll_pwait", waits_at_epoll_with_mask)
MASKED(epoll_pwait2, "epoll_pwait2", waits_at_epoll_precisely)

CASE(polling_has_an_end, "poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2") {
    open_epoll();
    struct pollfd one = {ends[0], POLLIN, 0};
    struct timespec soon = {0, 1000000};
    struct timeval soon_too = {0, 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    IS(poll(&one, 1, 1), 0);
    IS(poll(&one, 1, 0), 0);
    IS(poll(0, 0, 1), 0);
    IS(ppoll(&one, 1, &soon, 0), 0);
    IS(select(ends[0] + 1, &set, 0, 0, &soon_too), 0);
    HOLDS(!FD_ISSET(ends[0], &set));
    HOLDS(soon_too.tv_sec == 0 && soon_too.tv_usec == 0);
    IS(select(0, 0, 0, 0, &soon_too), 0);
    FD_SET(ends[0], &set);
    IS(pselect(ends[0] + 1, &set, 0, 0, &soon, 0), 0);
    IS(soon.tv_nsec, 1000000);
    IS(epoll_wait(epoll, &seen, 1, 1), 0);
    IS(epoll_wait(epoll, &seen, 1, 0), 0);
    IS(epoll_pwait(epoll, &seen, 1, 1, 0), 0);
    IS(epoll_pwait2(epoll, &seen, 1, &soon, 0), 0);
    close_both(), close(epoll);
}
CASE(polling_with_bad_arguments, "ppoll select pselect epoll_wait epoll_pwait epoll_pwait2 poll") {
    open_epoll();
    struct pollfd one = {ends[0], POLLIN, 0}, closed = {999, POLLIN, 0};
    struct timespec bad = {0, 2000000000}, negative = {-1, 0};
    struct timeval before = {-1, 0};
    FAILS(ppoll(&one, 1, &bad, 0), EINVAL);
    FAILS(ppoll(&one, 1, &negative, 0), EINVAL);
    FAILS(select(-1, 0, 0, 0, 0), EINVAL);
    FAILS(select(0, 0, 0, 0, &before), EINVAL);
    FAILS(pselect(-1, 0, 0, 0, 0, 0), EINVAL);
    FAILS(pselect(0, 0, 0, 0, &bad, 0), EINVAL);
    FAILS(epoll_wait(epoll, &seen, 0, -1), EINVAL);
    FAILS(epoll_wait(999, &seen, 1, -1), EBADF);
    FAILS(epoll_wait(ends[0], &seen, 1, -1), EINVAL);
    FAILS(epoll_pwait(epoll, &seen, 0, -1, 0), EINVAL);
    FAILS(epoll_pwait2(epoll, &seen, 1, &bad, 0), EINVAL);
    IS(poll(&closed, 1, -1), 1);
    IS(closed.revents, POLLNVAL);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(60, &set);
    FAILS(select(61, &set, 0, 0, 0), EBADF);
    close_both(), close(epoll);
}
CASE(reading_and_writing_with_bad_arguments, "read write readv writev recv send close shutdown accept accept4 connect") {
    open_pipe();
    FAILS(read(-1, bytes, 1), EBADF);
    FAILS(read(999, bytes, 1), EBADF);
    FAILS(read(ends[1], bytes, 1), EBADF);
    FAILS(write(ends[0], bytes, 1), EBADF);
    volatile int none = -1;
    FAILS(readv(ends[0], &vector, none), EINVAL);
    FAILS(writev(999, &vector, 1), EBADF);
    FAILS(recv(ends[0], bytes, 1, 0), ENOTSOCK);
    FAILS(send(ends[1], bytes, 1, 0), ENOTSOCK);
    FAILS(accept(ends[0], 0, 0), ENOTSOCK);
    FAILS(shutdown(ends[0], SHUT_RD), ENOTSOCK);
    FAILS(close(999), EBADF);
    IS(read(ends[0], bytes, 0), 0);
    close_both();
    int fd = socket(AF_INET, SOCK_STREAM, 0), packets = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(1)};
    FAILS(accept(fd, 0, 0), EINVAL);
    FAILS(accept4(packets, 0, 0, 0), EOPNOTSUPP);
    FAILS(accept4(fd, 0, 0, -1), EINVAL);
    FAILS(recv(fd, bytes, 1, 0), ENOTCONN);
    FAILS(shutdown(fd, SHUT_RD), ENOTCONN);
    FAILS(connect(fd, (struct sockaddr *)&nobody, sizeof nobody), ECONNREFUSED);
    FAILS(connect(999, (struct sockaddr *)&nobody, sizeof nobody), EBADF);
    close(fd), close(packets);
}
CASE(without_waiting, "read write recv send accept eventfd_read eventfd_write") {
    open_sockets();
    FAILS(recv(ends[0], bytes, 1, MSG_DONTWAIT), EAGAIN);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    FAILS(read(ends[0], bytes, 1), EAGAIN);
    fill(ends[1]);
    FAILS(send(ends[1], bytes, 1, MSG_DONTWAIT), EAGAIN);
    close_both();
    open_listener();
    fcntl(listener, F_SETFL, O_NONBLOCK);
    FAILS(accept(listener, 0, 0), EAGAIN);
    close(listener);
    event = eventfd(0, EFD_NONBLOCK);
    FAILS(reads_event(), EAGAIN);
    IS(eventfd_write(event, -2ul), 0);
    FAILS(writes_event(), EAGAIN);
    FAILS(eventfd_write(event, -1ul), EINVAL);
    close(event);
}
CASE(sockets_have_limits, "recv read send") {
    open_sockets();
    struct timeval limit = {0, 2000};
    IS(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    IS(setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
    FAILS(recv(ends[0], bytes, 1, 0), EAGAIN);
    FAILS(read(ends[0], bytes, 1), EAGAIN);
    fill(ends[1]);
    FAILS(send(ends[1], bytes, 1, 0), EAGAIN);
    close_both();
}
CASE(ends_of_pipes_and_sockets, "read write send shutdown close poll") {
    signal(SIGPIPE, SIG_IGN);
    open_pipe();
    IS(close(ends[1]), 0);
    IS(read(ends[0], bytes, 1), 0);
    IS(polls(), 1);
    close(ends[0]);
    open_pipe();
    close(ends[0]);
    FAILS(write(ends[1], bytes, 1), EPIPE);
    close(ends[1]);
    open_sockets();
    IS(shutdown(ends[1], SHUT_WR), 0);
    IS(recv(ends[0], bytes, 1, 0), 0);
    FAILS(send(ends[1], bytes, 1, MSG_NOSIGNAL), EPIPE);
    FAILS(shutdown(ends[0], 99), EINVAL);
    close_both();
}
CASE(a_broken_pipe_sends_a_signal, "write") {
    handle(SIGPIPE, 0);
    open_pipe();
    close(ends[0]);
    FAILS(write(ends[1], bytes, 1), EPIPE);
    IS(handled, 1);
    close(ends[1]);
}
static char path[] = "/tmp/conformance-XXXXXX";
static int other_file;
static int locks(void) { return flock(other_file, LOCK_EX); }
static int locks_in_the_old_way(void) { return lockf(other_file, F_LOCK, 0); }
static void unlocks(void) { IS(flock(ends[0], LOCK_UN), 0); }
CASE(files_are_locked, "flock") {
    ends[0] = mkstemp(path);
    other_file = open(path, O_RDWR);
    IS(flock(ends[0], LOCK_EX), 0);
    FAILS(flock(other_file, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    FAILS(flock(-1, LOCK_EX), EBADF);
    interrupted(locks, 0);
    restarted(locks, unlocks, 0);
    unlink(path);
    close(other_file), close(ends[0]);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}
CASE(files_are_locked_in_the_old_way, "lockf lockf64") {
    other_file = mkstemp(path);
    IS(locks_in_the_old_way(), 0);
    IS(lockf(other_file, F_TEST, 0), 0);
    IS(lockf64(other_file, F_TEST, 0), 0);
    IS(lockf(other_file, F_ULOCK, 0), 0);
    FAILS(lockf(other_file, 99, 0), EINVAL);
    FAILS(lockf(-1, F_LOCK, 0), EBADF);
    unlink(path);
    close(other_file);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}
