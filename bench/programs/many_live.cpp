// many_live EVENTS LIVE [far]: writes a .cmt of a made-up program to standard output, for `bench/verify_speed`. It
// makes LIVE blocks of 16 to 256 bytes. Then it ends blocks at random, and makes another at a free address each time,
// until there are EVENTS events. With `far`, each block is on a page of its own, 64 KiB from the next.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "cmt/writer.h"

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::uint64_t events = std::strtoull(arguments[1], nullptr, 10);
  const std::uint64_t live_max = std::strtoull(arguments[2], nullptr, 10);
  const bool is_far = count > 3 && arguments[3] == std::string_view("far");
  struct Block {
    cmt::Tag tag;
    std::uint64_t address;
    std::uint32_t size;
  };
  std::vector<Block> live;
  live.reserve(live_max);
  std::mt19937_64 random(1);
  std::uint64_t next_address = 0x7f0000000000, done = 0;
  cmt::Tag tag = 0;
  cmt::Header header;
  header.has_addresses = true;
  cmt::Writer writer(STDOUT_FILENO, header, {.level = 1});
  const auto add = [&](const cmt::Event& event) {
    if (!writer.add(event)) std::abort();
    ++done;
  };
  while (done < events) {
    if (live.size() < live_max) {
      const auto size = static_cast<std::uint32_t>(16 + random() % 241);
      live.push_back({++tag, next_address, size});
      next_address += is_far ? 65536 : (size + 31) / 16 * 16;
      add({.size = size, .tag = tag, .address = live.back().address});
      continue;
    }
    Block& block = live[random() % live.size()];
    add({.kind = cmt::Kind::free, .old_tag = block.tag, .old_address = block.address});
    block.tag = ++tag;
    add({.size = block.size, .tag = tag, .address = block.address});
  }
  writer.finish();
  return 0;
}
