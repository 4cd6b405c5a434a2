// Leaks a known number of objects through operator new, and keeps standard containers busy meanwhile.
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

struct Widget {
    char payload[200];
    __attribute__((noinline)) static void forget() { asm volatile("" : : "r"(new Widget) : "memory"); }
};

int main() {
    std::map<int, std::string> names;
    for (int round = 0; round < 20000; round++) {
        Widget::forget();
        names[round % 100] = std::string(100 + round % 300, 'n');
        std::vector<std::unique_ptr<int[]>> arrays;
        for (int i = 0; i < 4; i++) arrays.push_back(std::make_unique<int[]>(64));
        try {
            throw std::bad_alloc();
        } catch (const std::bad_alloc &) {
        }
    }
    names.clear();
    _exit(0);
}
