// Benchmarks with known numbers of blocks, for the gate of projects' CI. PLANTED adds one block to one of them.
#include <map>
#include <string>
#include <vector>

#include "cmt_benchmark.h"

namespace {

void parse(benchmark::State& state) {
  for ([[maybe_unused]] auto each : state) {
    std::vector<std::string> words;
    words.reserve(static_cast<std::size_t>(state.range(0)));
    for (std::int64_t i = 0; i < state.range(0); ++i) words.emplace_back(40, 'x');
    benchmark::DoNotOptimize(words);
  }
}
BENCHMARK(parse)->Arg(8)->Arg(64);

void add(benchmark::State& state) {
  for ([[maybe_unused]] auto each : state) {
    int sum = 1;
    benchmark::DoNotOptimize(sum);
#ifdef PLANTED
    benchmark::DoNotOptimize(std::vector<char>(10));
#endif
  }
}
BENCHMARK(add);

template <class Value>
void fill(benchmark::State& state) {
  for ([[maybe_unused]] auto each : state) {
    std::map<int, Value> values;
    for (int i = 0; i < 10; ++i) values[i] = {};
    benchmark::DoNotOptimize(values);
  }
}
BENCHMARK_TEMPLATE(fill, std::vector<int>)->Iterations(100);
BENCHMARK_TEMPLATE(fill, std::string)->Threads(2);

}  // namespace

CMT_BENCHMARK_MAIN()
