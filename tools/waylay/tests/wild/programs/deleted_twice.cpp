// finds: crash double free of
#include <string>
#include <thread>
static std::string *shared = new std::string(100, 'x');
static void drop() {
    if (shared) {
        delete shared;
        shared = nullptr;
    }
}
int main() {
    std::thread a(drop), b(drop);
    a.join();
    b.join();
}
