// Throws an exception that nobody catches. The handler tells who and where, and waits to be looked at.
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <unistd.h>

static volatile int sink;

static void handler(int signal, siginfo_t *info, void *context) {
    std::printf("%d %d 0 %lx %lx\n", getpid(), signal, (unsigned long)info, (unsigned long)context);
    std::fflush(stdout);
    for (;;) pause();
}

namespace shop {
namespace {
template <typename T> struct Book {
    [[gnu::noinline]] void take(T number) {
        if (number > sink) throw std::runtime_error("no such order");
        sink = number;
    }
};
}
[[gnu::noinline]] void serve() {
    Book<int>().take(7);
    sink = 1;
}
}

int main() {
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGABRT, &action, nullptr);
    std::puts("ready");
    std::fflush(stdout);
    shop::serve();
    return sink;
}
