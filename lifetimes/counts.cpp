#include "lifetimes/counts.h"

#include <algorithm>
#include <vector>

namespace cmt::lifetimes {

void PairCounter::add(const Event& event) {
  clock_.begin(event);
  if (event.ends_block()) end(event.old_tag);
  if (!event.makes_block()) return;
  if (first_tag_ == 0) first_tag_ = event.tag;
  clock_.allocate(event.bytes());
  if (!live_.insert({event.tag, event.bytes(), clock_.now()})) complain(event.tag, "is made and already alive");
}

void PairCounter::end(Tag tag) {
  if (const auto block = live_.erase(tag)) {
    ++counts_[Pair{clock_.now() - block->born, block->size}];
  } else if (first_tag_ != 0 && tag >= first_tag_) {
    complain(tag, "is ended and not alive");
  }
}

void PairCounter::complain(Tag tag, const char* what) {
  complaints_.add("block <" + std::to_string(tag) + "> " + what);
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
