// As freed.c, with an object that is deleted.
#include <cstdlib>
#include <mutex>
#include <thread>

struct Record {
    long one = 10, other = 20;
    bool whole() const { return one + other == 30; }
};

static std::mutex guard;
static Record *current;

static void look() {
    Record *record;
    {
        std::lock_guard lock(guard);
        record = current;
#ifdef FIXED
        if (record && !record->whole()) std::abort();
#endif
    }
#ifndef FIXED
    if (record && !record->whole()) std::abort();
#endif
}

static void discard() {
    Record *record;
    {
        std::lock_guard lock(guard);
        record = current;
        current = nullptr;
    }
    delete record;
}

int main() {
    current = new Record;
    std::thread reader(look), owner(discard);
    reader.join();
    owner.join();
}
