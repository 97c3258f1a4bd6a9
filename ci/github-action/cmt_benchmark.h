/// CMT_BENCHMARK_MAIN(): in place of BENCHMARK_MAIN(), so that a recorded program of Google Benchmark (1.7 or later)
/// has a mark for each benchmark.
///
/// Google Benchmark repeats a benchmark until its time is known. So the number of its calls differs from run to run.
/// But with a memory manager it calls each benchmark once more, for a fixed number of iterations: 16, or fewer if the
/// timed run had fewer. Only that second run is marked. If cmttrace records the program, the timed run has one
/// iteration, and fills caches. An option of the command line, or the benchmark itself, may set another number.
///
/// A memory manager does not know the name of the benchmark. So each benchmark is started by its name.
///
/// In a program that is not recorded this is BENCHMARK_MAIN().
#pragma once

#include <benchmark/benchmark.h>
#include <cmttrace.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace cmt_benchmark {

class Marks : public benchmark::MemoryManager {
 public:
  std::string name{};

  void Start() override { cmt_mark(name.c_str()); }
  // Newer versions have only the second of these, so neither is marked as overriding.
  void Stop(Result*) { cmt_mark("[between benchmarks]"); }
  void Stop(Result&) { cmt_mark("[between benchmarks]"); }
};

/// Prints the description of the machine once, not for each benchmark.
class Console : public benchmark::ConsoleReporter {
 public:
  bool ReportContext(const Context& context) override {
    if (is_described_) return true;
    is_described_ = true;
    return ConsoleReporter::ReportContext(context);
  }

 private:
  bool is_described_ = false;
};

inline void set_option(std::string option) {
  char program[] = "benchmark";
  char* arguments[] = {program, option.data(), nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
}

/// Returns the names of the benchmarks that the options choose, in their order, each once.
inline std::vector<std::string> names() {
  std::stringstream lines;
  benchmark::ConsoleReporter reporter;
  reporter.SetOutputStream(&lines);
  set_option("--benchmark_list_tests=true");
  benchmark::RunSpecifiedBenchmarks(&reporter);
  set_option("--benchmark_list_tests=false");
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Returns a filter that matches one name.
inline std::string filter_of(const std::string& name) {
  std::string filter = "^";
  for (const char letter : name) {
    if (std::string(".[]{}()\\*+?^$|").find(letter) != std::string::npos) filter += '\\';
    filter += letter;
  }
  return filter + "$";
}

inline int run(int argc, char** argv) {
  const bool is_recorded = cmttrace_mark != nullptr;
  if (is_recorded) set_option("--benchmark_min_time=0");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (is_recorded) {
    static Marks marks;
    benchmark::RegisterMemoryManager(&marks);
    Console console;
    for (const std::string& name : names()) {
      marks.name = name;
      benchmark::RunSpecifiedBenchmarks(&console, filter_of(name));
    }
  } else {
    benchmark::RunSpecifiedBenchmarks();
  }
  benchmark::Shutdown();
  return 0;
}

}  // namespace cmt_benchmark

#define CMT_BENCHMARK_MAIN() \
  int main(int argc, char** argv) { return cmt_benchmark::run(argc, argv); }
