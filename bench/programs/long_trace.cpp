// long_trace EVENTS STACKS: writes a .cmt of a made-up program to standard output, for `bench/report_speed`. Each block
// is of one of STACKS call stacks, of which few allocate most. Most blocks end soon, the others live in a table of 64
// Ki blocks; one in 4,096 is never freed.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cmt/stacks.h"
#include "cmt/writer.h"

namespace {

cmt::StackTable make_stacks(std::uint32_t count) {
  cmt::StackTable stacks;
  constexpr std::uint32_t functions = 4000;
  for (std::uint32_t i = 0; i < functions; ++i) {
    const std::string name = "function_" + std::to_string(i);
    const cmt::FrameName named{name, "made_up.cc", i + 1};
    stacks.set_names(stacks.add_frame({0, 4096 + 16 * std::uint64_t{i}, false}), {&named, 1});
  }
  std::mt19937 random(1);
  stacks.add_node({0, 1});
  while (stacks.node_count() <= count) {
    const auto parent = static_cast<cmt::StackId>(1 + random() % (stacks.node_count() - 1));
    stacks.add_node({parent, static_cast<cmt::FrameId>(1 + random() % functions)});
  }
  return stacks;
}

class Program {
 public:
  Program(std::uint32_t stacks, std::uint64_t events) : stacks_(make_stacks(stacks)), events_(events) {
    cmt::Header header;
    header.has_stacks = true;
    writer_.emplace(STDOUT_FILENO, std::move(header), cmt::WriteOptions{.level = 1});
    writer_->use_stacks(stacks_);
  }

  void run() {
    std::vector<cmt::Tag> table(1 << 16), young(8);
    for (std::uint64_t i = 0; done_ < events_; ++i) {
      const std::uint64_t choice = random_();
      if (choice % 4096 == 0) {
        allocate();
        continue;
      }
      const bool is_long = (choice >> 12) % 16 == 0;
      cmt::Tag& place = is_long ? table[(choice >> 20) % table.size()] : young[(choice >> 20) % young.size()];
      if (place != 0) end(place);
      place = allocate();
    }
    writer_->finish();
  }

 private:
  cmt::Tag allocate() {
    const std::uint64_t choice = random_();
    // A share that falls with the stack's number: half of the blocks are of the first hundredth.
    const double part = static_cast<double>(choice >> 11) * 0x1p-53, cube = part * part * part;
    cmt::Event event;
    event.size = 16 + 16 * (choice % 8) * (choice / 8 % 8);
    event.tag = ++tag_;
    event.stack = 1 + static_cast<cmt::StackId>(cube * cube * part * (stacks_.node_count() - 2));
    add(event);
    return event.tag;
  }
  void end(cmt::Tag tag) {
    cmt::Event event;
    event.kind = cmt::Kind::free;
    event.old_tag = tag;
    add(event);
  }
  void add(const cmt::Event& event) {
    if (!writer_->add(event)) std::abort();
    ++done_;
  }

  cmt::StackTable stacks_;
  std::uint64_t events_, done_ = 0;
  cmt::Tag tag_ = 0;
  std::mt19937_64 random_{2};
  std::optional<cmt::Writer> writer_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  Program(static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10)), std::strtoull(arguments[1], nullptr, 10))
      .run();
  return 0;
}
