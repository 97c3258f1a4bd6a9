#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cmt::watch {

/// What processes have together: by their proportional sets where those are recorded, so that what they share counts
/// once, else by their resident sets.
class Summed {
 public:
  void add(const std::optional<std::uint64_t>& proportional_bytes, const std::optional<std::uint64_t>& resident_bytes) {
    if (!proportional_bytes && !resident_bytes) return;
    bytes_ += proportional_bytes.value_or(resident_bytes.value_or(0));
    (proportional_bytes ? any_proportional_ : any_resident_) = true;
  }

  void add(const Summed& other) {
    bytes_ += other.bytes_;
    any_proportional_ |= other.any_proportional_;
    any_resident_ |= other.any_resident_;
  }

  /// Whether anything could be read.
  bool any() const { return any_proportional_ || any_resident_; }

  std::uint64_t bytes() const { return bytes_; }

  /// "pss", "rss", or "pss or rss" where it is the one of some and the other of others.
  std::string_view metric() const {
    if (any_proportional_ && any_resident_) return "pss or rss";
    return any_proportional_ ? "pss" : "rss";
  }

 private:
  std::uint64_t bytes_ = 0;
  bool any_proportional_ = false, any_resident_ = false;
};

}  // namespace cmt::watch
