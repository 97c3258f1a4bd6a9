// symbol_speed: names the addresses of a heaptrack log's call stacks, with toolkit/symbols. It reads the raw log's
// lines of modules ("m") and of frames ("t") from standard input. It prints the number of addresses, the number with a
// function and with a line, and the highest resident set.

#include <sys/resource.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "toolkit/symbols/name_frames.h"

int main() {
  cmt::StackTable stacks;
  std::string line, program;
  while (std::getline(std::cin, line)) {
    std::istringstream fields(line);
    std::string kind, size, path;
    fields >> kind >> std::hex;
    if (kind == "x") fields >> size >> program;
    cmt::Module module;
    if (kind == "m" && fields >> size >> module.path >> module.bias) {
      std::uint64_t begin = 0, bytes = 0;
      while (fields >> begin >> bytes) module.end = module.bias + begin + bytes;
      module.begin = module.bias;
      if (module.path == "x") module.path = program;
      if (module.path == "linux-vdso.so.1") module.path = "[vdso]";
      stacks.add_module(module);
    }
    std::uint64_t address = 0;
    if (kind != "t" || !(fields >> address)) continue;
    cmt::ModuleId id = stacks.module_count();
    while (--id != 0 && (address < stacks.module(id).begin || address >= stacks.module(id).end)) continue;
    stacks.add_frame({id, address, false});
  }
  const auto say = [](const std::string& message) { std::fprintf(stderr, "%s\n", message.c_str()); };
  const auto counts = cmt::symbols::name_all_frames(stacks, {.perf_map = {}, .say = say});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%zu addresses, %zu with a function, %zu with a line, %ld MiB\n", counts.frames, counts.with_function,
              counts.with_line, usage.ru_maxrss / 1024);
}
