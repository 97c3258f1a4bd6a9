// Prints the result of a call in another process, a line for each number: `remote_calls trim PID`, `remote_calls ask
// PID`.
#include "cmtwatch/explain/calls/remote_calls.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

using namespace cmt::watch::explain;

static void print(const std::string& name, long long number) { std::printf("%s %lld\n", name.c_str(), number); }

static void trim(int pid) {
  const TrimResult result = call_malloc_trim(pid);
  print("resident_before", static_cast<long long>(result.resident_before));
  print("resident_after", static_cast<long long>(result.resident_after));
  print("given_back", result.given_back());
  print("kept_ns", result.kept.count());
}

static void ask(int pid) {
  const auto result = ask_allocator(pid);
  if (!result) {
    std::puts("allocator none");
    return;
  }
  std::printf("allocator %s\ncall %s\n", result->allocator.c_str(), result->returning_call.c_str());
  for (const AllocatorFigure& figure : result->figures) print(figure.name, static_cast<long long>(figure.bytes));
  print("returnable", static_cast<long long>(result->returnable_bytes));
  print("kept_ns", result->kept.count());
}

int main(int, char** argv) {
  try {
    (argv[1][0] == 't' ? trim : ask)(std::atoi(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
