// A work-stealing deque after Chase and Lev. The bug is the one that a missing fence makes: the owner looks at the top
// before the others can see that it took from the bottom.
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<int> top{0}, bottom{0};
static std::atomic<int> items[8], taken[8];

static void push(int item)
{
    int b = bottom.load();
    items[b % 8].store(item);
    bottom.store(b + 1);
}

static int pop()
{
#ifdef FIXED
    int b = bottom.load() - 1;
    bottom.store(b);
    int t = top.load();
#else
    int t = top.load();
    int b = bottom.load() - 1;
    bottom.store(b);
#endif
    if (t > b) {
        bottom.store(b + 1);
        return -1;
    }
    int item = items[b % 8].load();
    if (t == b) {
        if (!top.compare_exchange_strong(t, t + 1))
            item = -1;
        bottom.store(b + 1);
    }
    return item;
}

static int steal()
{
    int t = top.load();
    int b = bottom.load();
    if (t >= b)
        return -1;
    int item = items[t % 8].load();
    return top.compare_exchange_strong(t, t + 1) ? item : -1;
}

static void got(int item)
{
    if (item >= 0)
        assert(taken[item].fetch_add(1) == 0);
}

int main()
{
    push(0);
    push(1);
    std::thread thief([] {
        got(steal());
        got(steal());
    });
    got(pop());
    got(pop());
    thief.join();
}
