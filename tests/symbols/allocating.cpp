// Allocates in functions that a test knows: recursive, inlined, of threads, of containers and of a plugin, whose path
// is the argument.

#include <dlfcn.h>

#include <cstdlib>
#include <thread>
#include <vector>

volatile void* kept;  // so that no call of malloc is left out

[[gnu::noinline]] void walk(int depth) {
  kept = std::malloc(16);
  if (depth > 1) walk(depth - 1);
  kept = nullptr;  // after the call, so that the call is no jump
}

[[gnu::always_inline]] inline void keep_inlined(std::size_t size) { kept = std::malloc(size); }

[[gnu::noinline]] void use_inlined() {
  for (int i = 0; i < 10; ++i) keep_inlined(200);
}

[[gnu::noinline]] void temporary_blocks() {
  for (int i = 0; i < 100; ++i) {
    void* const block = std::malloc(32);
    kept = block;
    std::free(block);
  }
}

[[gnu::noinline]] void resize() {
  void* block = std::malloc(100);
  for (std::size_t size = 200; size <= 1000; size += 100) {
    block = std::realloc(block, size);
    kept = block;
  }
}

namespace containers {

[[gnu::noinline]] std::vector<int>* fill_vector() {
  auto* const numbers = new std::vector<int>;
  numbers->reserve(500);
  return numbers;
}

}  // namespace containers

int main(int, char** arguments) {
  walk(50);
  use_inlined();
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(temporary_blocks);
  for (std::thread& each : threads) each.join();
  resize();
  kept = containers::fill_vector();
  void* const plugin = dlopen(arguments[1], RTLD_NOW);
  if (plugin == nullptr) return 1;
  reinterpret_cast<void (*)()>(dlsym(plugin, "keep_in_plugin"))();
  return dlclose(plugin);
}
