// Four numbers that belong together are written and read as vectors, in two halves.
#include <cassert>
#include <emmintrin.h>
#include <mutex>
#include <thread>

alignas(16) static long pair[4];
static std::mutex lock;

static void write(long value) {
#ifdef FIXED
    std::lock_guard<std::mutex> held(lock);
#endif
    __m128i both = _mm_set1_epi64x(value);
    _mm_store_si128((__m128i *)pair, both);
    _mm_store_si128((__m128i *)(pair + 2), both);
}

static void read() {
#ifdef FIXED
    std::lock_guard<std::mutex> held(lock);
#endif
    long seen[4];
    _mm_storeu_si128((__m128i *)seen, _mm_load_si128((__m128i *)pair));
    _mm_storeu_si128((__m128i *)(seen + 2), _mm_load_si128((__m128i *)(pair + 2)));
    assert(seen[0] == seen[1] && seen[1] == seen[2] && seen[2] == seen[3]);
}

int main() {
    std::thread one([] { write(1); write(2); }), two([] { read(); read(); });
    one.join();
    two.join();
}
