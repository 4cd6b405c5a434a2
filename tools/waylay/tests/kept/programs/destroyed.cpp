// d = 3: main returns, and a static object is destroyed while a thread that nobody waits for looks at it twice; and the process
// is not gone before the thread has seen that.
#include <cstdlib>
#include <thread>

struct Settings {
    volatile int state = 1;
    ~Settings() { state = 0; }
};

static Settings settings;

int main() {
    std::thread([] {
        int before = settings.state;
        int after = settings.state;
        if (before != after) abort();
    }).detach();
}
