// Exceptions that pass functions whose code is replaced right where a call returns to.
#include <atomic>
#include <thread>

namespace {

std::atomic<int> passed, caught;

__attribute__((noinline)) void raise(int what) {
  passed.fetch_add(1);
  if (what != 0) throw what;
}

// The instruction behind the call is a site, and there is nothing to clean up here.
__attribute__((noinline)) void in_between(int what) {
  raise(what);
  passed.fetch_add(1);
}

void try_it() {
  for (int what = 0; what < 3; what++) {
    try {
      in_between(what);
    } catch (int thrown) {
      caught.fetch_add(thrown);
    }
  }
}

}  // namespace

extern "C" __declspec(dllexport) int thrown(void) {
  passed = 0;
  caught = 0;
  std::thread one(try_it), two(try_it);
  one.join();
  two.join();
  return caught == 6 && passed == 8;
}
