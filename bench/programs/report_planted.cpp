// A program with one planted fault among many functions that allocate at random, for `bench/report_planted` and
// `bench/diff_planted`.
//
// report_planted KIND SEED [NOISE EXTRA]: calls 60 functions of different names along random chains. Each has a habit
// of its own: sizes, how many blocks it keeps and how long, temporary blocks. The seed chooses one of them, which has
// the fault KIND too:
//
//   leak       a part of its blocks is never freed
//   cache      it keeps its blocks until the end of the program
//
//   temporary  it makes blocks and frees them at once
//   pins       while a phase loads much, it pins the pages of that memory until the end
//   none       nothing
//
// To pin a page, the function makes a block of the same size on it, and keeps that block. A block of another size might
// get a hole elsewhere, where it pins nothing.
//
// With NOISE the functions have the habits of SEED, but are called in another order. The chosen function then also
// makes a block of EXTRA bytes at each call, unless EXTRA is 0, and keeps the last eight of them.
//
// Prints the name of the planted function, and with NOISE the number of its calls.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr int function_count = 60;

enum class Habit { temporary, queue, set, growing, startup };

struct Function {
  Habit habit = Habit::temporary;
  std::size_t size = 0;
  std::size_t kept = 0;  // blocks that a queue or a set has at most
  std::deque<void*> blocks;
  char* growing = nullptr;
  std::size_t growing_size = 0;
};

std::mt19937 choice;
std::array<Function, function_count> functions;
int planted = -1;
const char* kind = "none";
double fault_rate = 0;
std::size_t fault_size = 0;
std::deque<void*> cached;
std::deque<void*> pins;
bool is_loading = false;
std::vector<void*> phase;
std::size_t extra_size = 0;
std::deque<void*> extra_blocks;
unsigned planted_calls = 0;

unsigned below(unsigned end) { return end == 0 ? 0 : choice() % end; }

/// So that no call is optimised away or becomes a jump.
volatile unsigned sink = 0;

template <int number>
[[gnu::noinline]] void function() {
  Function& self = functions[number];
  switch (self.habit) {
    case Habit::temporary:
      for (unsigned i = below(3); i-- > 0;) {
        void* volatile const block = std::malloc(self.size + below(32));
        std::free(block);
      }
      break;
    case Habit::queue:
      self.blocks.push_back(std::malloc(self.size));
      if (self.blocks.size() > self.kept) {
        std::free(self.blocks.front());
        self.blocks.pop_front();
      }
      break;
    case Habit::set:
      if (self.blocks.size() < self.kept || below(2) == 0) self.blocks.push_back(std::malloc(self.size + below(64)));
      while (self.blocks.size() > self.kept) {
        std::swap(self.blocks[below(static_cast<unsigned>(self.blocks.size()))], self.blocks.back());
        std::free(self.blocks.back());
        self.blocks.pop_back();
      }
      break;
    case Habit::growing:
      self.growing_size = self.growing_size > self.size * self.kept ? self.size : self.growing_size * 3 / 2 + self.size;
      self.growing = static_cast<char*>(std::realloc(self.growing, self.growing_size));
      break;
    case Habit::startup:
      break;
  }
  if (number == planted && is_loading) {
    pins.push_back(std::malloc(fault_size));
    return;
  }
  if (number == planted && below(1000) < static_cast<unsigned>(fault_rate * 1000)) {
    if (std::strcmp(kind, "leak") == 0) {
      void* volatile const lost = std::malloc(fault_size);
      (void)lost;
    } else if (std::strcmp(kind, "cache") == 0) {
      cached.push_back(std::malloc(fault_size));
    } else if (std::strcmp(kind, "temporary") == 0) {
      for (int i = 0; i < 3; ++i) {
        void* volatile const block = std::malloc(fault_size);
        std::free(block);
      }
    }
  }
  if (number == planted && ++planted_calls != 0 && extra_size != 0) {
    extra_blocks.push_back(std::malloc(extra_size));
    if (extra_blocks.size() > 8) {
      std::free(extra_blocks.front());
      extra_blocks.pop_front();
    }
  }
  sink = sink + number;
}

using Call = void (*)();

template <int... number>
constexpr std::array<Call, sizeof...(number)> all_functions(std::integer_sequence<int, number...>) {
  return {&function<number>...};
}
constexpr auto calls = all_functions(std::make_integer_sequence<int, function_count>());

template <int depth>
void dispatch(unsigned path, Call call);

[[gnu::noinline]] void load_phase(std::size_t blocks, std::size_t size) {
  const bool has_pins = std::strcmp(kind, "pins") == 0;
  is_loading = has_pins;
  fault_size = has_pins ? size : fault_size;
  std::uintptr_t page = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    phase.push_back(std::malloc(size));
    const std::uintptr_t own = reinterpret_cast<std::uintptr_t>(phase.back()) / 4096;
    if (has_pins && own != page) dispatch<6>(choice(), calls[static_cast<std::size_t>(planted)]);
    page = own;
  }
  is_loading = false;
}

/// Calls a function through a random chain of others.
template <int depth>
[[gnu::noinline]] void dispatch(unsigned path, Call call) {
  if constexpr (depth == 0) {
    call();
  } else {
    if (path % 2 == 0)
      dispatch<depth - 1>(path / 2, call);
    else
      call();
  }
  sink = sink + depth;
}

[[gnu::noinline]] void start_up(Function& self) {
  for (std::size_t i = 0; i < self.kept; ++i) self.blocks.push_back(std::malloc(self.size));
}

void choose_habits() {
  for (Function& each : functions) {
    each.habit = static_cast<Habit>(below(5));
    each.size = 16 + below(below(4) == 0 ? 2000 : 200);
    each.kept = 1 + below(200);
  }
  planted = static_cast<int>(below(function_count));
  fault_rate = 0.2 + 0.01 * below(80);
  fault_size = 24 + below(400);
  if (std::strcmp(kind, "temporary") == 0) fault_rate = 1;
  if (std::strcmp(kind, "pins") == 0) below(64);  // the numbers that follow are those of earlier figures
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  kind = argv[1];
  choice.seed(static_cast<unsigned>(std::atoi(argv[2])));
  choose_habits();
  const unsigned steps = 100'000 + below(300'000);
  std::vector<unsigned> weights;  // how often each function is called
  for (int i = 0; i < function_count; ++i)
    weights.insert(weights.end(), 1 + below(i == planted ? 4 : 8) + (i == planted ? 4 : 0), static_cast<unsigned>(i));
  if (std::strcmp(kind, "temporary") == 0)
    weights.insert(weights.end(), weights.size() / 4, static_cast<unsigned>(planted));
  for (Function& each : functions) {
    if (each.habit == Habit::startup) start_up(each);
  }
  if (argc == 5) extra_size = static_cast<std::size_t>(std::atol(argv[4]));
  const unsigned phase_at = below(steps / 2);
  const unsigned phase_blocks = std::strcmp(kind, "pins") == 0 ? 5'000 + below(20'000) : below(3'000);
  if (argc == 5) choice.seed(static_cast<unsigned>(std::atoi(argv[3])));
  for (unsigned step = 0; step < steps; ++step) {
    if (step == phase_at) load_phase(phase_blocks, 64 + below(3) * 64);
    if (step == phase_at + steps / 10) {
      for (void* const block : phase) std::free(block);
      phase.clear();
    }
    dispatch<6>(choice(), calls[weights[below(static_cast<unsigned>(weights.size()))]]);
  }
  for (void* const block : cached) std::free(block);
  for (void* const block : pins) std::free(block);
  for (Function& each : functions) {
    for (void* const block : each.blocks) std::free(block);
    std::free(each.growing);
  }
  std::printf("function<%d>", planted);
  argc == 5 ? std::printf(" %u\n", planted_calls) : std::printf("\n");
  return 0;
}
