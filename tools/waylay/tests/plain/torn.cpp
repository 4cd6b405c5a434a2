// A name is replaced by one copy and compared by another: half of it may be seen.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

static std::vector<char> name(48, 'a');
static std::mutex lock;

static std::unique_lock<std::mutex> guard() {
#ifdef FIXED
    return std::unique_lock<std::mutex>(lock);
#else
    return std::unique_lock<std::mutex>(lock, std::defer_lock);
#endif
}

int main() {
    const std::vector<char> before = name, after(48, 'b');
    std::thread writer([&] {
        auto held = guard();
        std::copy(after.begin(), after.end(), name.begin());
    });
    std::thread reader([&] {
        auto held = guard();
        const bool old = std::memcmp(name.data(), before.data(), name.size()) == 0;
        if (!old && std::memcmp(name.data(), after.data(), name.size()) != 0) {
            std::abort();
        }
    });
    writer.join();
    reader.join();
}
