// Libraries of the system, each used by two threads at once, with results that are known. The first argument says which,
// the second is its file.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <locale>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

static void *library;

template <class Function> static Function *find(const char *name) {
    auto *found = reinterpret_cast<Function *>(dlsym(library, name));
    if (!found) {
        std::fprintf(stderr, "no %s\n", name);
        std::exit(3);
    }
    return found;
}

static bool use_stdcxx(int) {
    for (int i = 0; i < 10; i++) {
        std::locale copy = std::locale::classic();
        std::ostringstream out;
        out.imbue(copy);
        out << i << ' ' << 2.5 << ' ' << std::string(40, 'x');
        auto shared = std::make_shared<std::string>(out.str());
        std::weak_ptr<std::string> weak = shared;
        try {
            throw std::runtime_error(*weak.lock());
        } catch (const std::runtime_error &error) {
            auto kept = std::make_exception_ptr(error);
            auto again = kept;
            if (std::to_string(i) + " 2.5 " + std::string(40, 'x') != error.what() || !(kept == again)) return false;
        }
    }
    return true;
}

static bool use_crypto(int) {
    static const unsigned char expected[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
    auto fetch = find<void *(void *, const char *, const char *)>("EVP_MD_fetch");
    auto release = find<void(void *)>("EVP_MD_free");
    auto digest = find<int(const void *, size_t, unsigned char *, unsigned *, const void *, void *)>("EVP_Digest");
    for (int i = 0; i < 10; i++) {
        unsigned char result[64];
        unsigned length = 0;
        void *kind = fetch(nullptr, "SHA256", nullptr);
        if (!kind || digest("abc", 3, result, &length, kind, nullptr) != 1) return false;
        release(kind);
        if (length != 32 || std::memcmp(result, expected, sizeof expected) != 0) return false;
    }
    return true;
}

static int take_sum(void *to, int, char **values, char **) {
    *static_cast<std::string *>(to) = values[0];
    return 0;
}

static bool use_sqlite(int) {
    auto open = find<int(const char *, void **)>("sqlite3_open");
    auto close = find<int(void *)>("sqlite3_close");
    auto run = find<int(void *, const char *, int (*)(void *, int, char **, char **), void *, char **)>("sqlite3_exec");
    void *base = nullptr;
    std::string sum;
    const char *fill = "CREATE TABLE t(n); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100) "
                       "INSERT INTO t SELECT n FROM c;";
    bool good = open(":memory:", &base) == 0 && run(base, fill, nullptr, nullptr, nullptr) == 0 &&
                run(base, "SELECT sum(n) FROM t", take_sum, &sum, nullptr) == 0;
    return close(base) == 0 && good && sum == "5050";
}

static void *queues[2];

// Each sends to the other and adds up what it gets.
static bool use_glib(int me) {
    auto push = find<void(void *, void *)>("g_async_queue_push");
    auto pop = find<void *(void *)>("g_async_queue_pop");
    long sum = 0;
    for (long i = 1; i <= 20; i++) {
        push(queues[!me], reinterpret_cast<void *>(i));
        sum += reinterpret_cast<long>(pop(queues[me]));
    }
    return sum == 210;
}

static bool use_rust(int) { return find<unsigned long()>("queue_run")() == 5050; }

static bool (*use)(int);

static void *thread(void *number) {
    return reinterpret_cast<void *>(static_cast<long>(use(number != nullptr)));
}

int main(int, char **arguments) {
    const std::string which = arguments[1];
    library = dlopen(arguments[2], RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    use = which == "stdc++" ? use_stdcxx : which == "crypto" ? use_crypto : which == "sqlite3" ? use_sqlite
        : which == "glib" ? use_glib : use_rust;
    if (which == "glib") {
        for (auto &queue : queues) queue = find<void *()>("g_async_queue_new")();
    }
    pthread_t threads[2];
    pthread_create(&threads[0], nullptr, thread, nullptr);
    pthread_create(&threads[1], nullptr, thread, &use);
    int bad = 0;
    for (pthread_t one : threads) {
        void *result = nullptr;
        pthread_join(one, &result);
        bad += result == nullptr;
    }
    return bad;
}
