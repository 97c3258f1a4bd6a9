// Writes a .cmt with all kinds of events and few live blocks, so that even a short trace has origins:
//
//     make_random EVENTS BLOCK_EVENTS SEED none|reused|random|malloc >FILE
//
// The last argument chooses the addresses. malloc: there are none, and no events of pools and of pages given back.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "cmt/writer.h"
#include "tests/format-spec/stack_fixture.h"
#include "tests/format-spec/trace_fixture.h"

namespace {

using namespace cmt::fixture;

Addresses addresses_of(std::string_view word) {
  return word == "reused" ? Addresses::reused : word == "random" ? Addresses::random : Addresses::none;
}

void write(std::size_t events, cmt::WriteOptions options, unsigned seed, Addresses addresses, bool only_malloc) {
  constexpr std::size_t live_max = 40;
  RandomTrace trace(seed, addresses, live_max);
  RandomStacks stacks(seed);
  cmt::Header header;
  header.has_header = true;
  header.metadata = {{"touched_min", "1"}};
  cmt::Writer writer(STDOUT_FILENO, header, options);
  writer.use_stacks(stacks.table());
  for (std::size_t i = 0; i < events; ++i) {
    cmt::Event event = trace.next();
    if (only_malloc && (cmt::is_of_pool(event.kind) || event.kind == cmt::Kind::discard)) continue;
    if (cmt::traits(event.kind).allocates || cmt::traits(event.kind).releases || cmt::is_of_pool(event.kind))
      event.stack = stacks.next();
    if (!writer.add(event)) throw std::logic_error("refused: " + cmt::to_line(event));
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("Usage: make_random EVENTS BLOCK_EVENTS SEED none|reused|random|malloc\n", stderr);
    return 2;
  }
  try {
    const auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
    write(number(1), in_blocks_of(static_cast<std::uint32_t>(number(2))), static_cast<unsigned>(number(3)),
          addresses_of(argv[4]), std::string_view(argv[4]) == "malloc");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_random: %s\n", error.what());
    return 1;
  }
}
