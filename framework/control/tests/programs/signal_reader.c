// An event loop as servers have it: its descriptors are made before the first thread, and signals are read from one of them.
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int news;

static void *works(void *unused) {
    uint64_t one = 1;
    CHECK(write(news, &one, sizeof one) == sizeof one);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    return unused;
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, 0) == 0);
    int signals = signalfd(-1, &set, SFD_NONBLOCK), poller = epoll_create1(0);
    news = eventfd(0, EFD_NONBLOCK);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = i ? signals : news};
        CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event) == 0);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], 0, works, 0) == 0);
    // The second signal is lost if the first was not read before it came.
    for (uint64_t written = 0, read_signals = 0; written < 2 || read_signals < 1;) {
        struct epoll_event event;
        CHECK(epoll_wait(poller, &event, 1, -1) == 1);
        if (event.data.fd == news) {
            uint64_t count;
            CHECK(read(news, &count, sizeof count) == sizeof count);
            written += count;
        } else {
            struct signalfd_siginfo information;
            CHECK(read(signals, &information, sizeof information) == sizeof information);
            CHECK(information.ssi_signo == SIGUSR1);
            read_signals++;
        }
    }
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], 0) == 0);
    return 0;
}
