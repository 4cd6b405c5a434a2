// d = 3: a moment of two steps, behind a thread that waits by looking and nothing else.
#include <atomic>
#include <cstdlib>
#include <thread>

static std::atomic<int> ready, begun, done;

int main() {
    std::thread waits([] {
        while (ready.load() == 0) {
        }
        begun = 1;
        done = 1;
    });
    std::thread prepares([] { ready = 1; });
    std::thread looks([] {
        if (begun && !done) std::abort();
    });
    waits.join();
    prepares.join();
    looks.join();
}
