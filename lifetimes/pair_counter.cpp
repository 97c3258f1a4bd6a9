#include "lifetimes/pair_counter.h"

#include <algorithm>
#include <vector>

namespace cmt::lifetimes {

void PairCounter::count_event(const Event& event) {
  live_.start_event(event);
  if (event.ends_block()) {
    const Block* const block = live_.end_block(event.old_tag);
    if (block != nullptr) ++counts_[Pair{live_.clock().now() - block->born, block->size}];
  }
  if (event.makes_block()) live_.begin_block(event);
}

std::string PairCounter::to_text() const {
  struct Line {
    std::uint64_t lifetime;
    std::string size;
    std::uint64_t count;
  };
  std::vector<Line> lines;
  lines.reserve(counts_.size());
  for (const auto& [pair, count] : counts_) lines.push_back({pair.lifetime, std::to_string(pair.size), count});
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.lifetime != b.lifetime ? a.lifetime < b.lifetime : a.size < b.size;
  });
  std::string text;
  for (const Line& line : lines) {
    const std::string count = std::to_string(line.count);
    text.append(count.size() < 7 ? 7 - count.size() : 0, ' ');
    text += count + " " + std::to_string(line.lifetime) + " " + line.size + "\n";
  }
  return text;
}

}  // namespace cmt::lifetimes
