#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace cmt::collector {

/// When rings that fill fast are to be read next: when the fullest is a quarter full. Times in ns, of one clock.
class Pace {
 public:
  void begin_pass(std::uint64_t now) {
    period_ = now - began_;
    began_ = now;
    fullest_ = 0;
  }
  /// A ring held `records`, and had room for `places`.
  void found(std::uint64_t records, std::uint64_t places) {
    fullest_ = std::max(fullest_, static_cast<double>(records) / static_cast<double>(places));
  }
  /// A ring that was full has kept its thread waiting, who knows how long, and so tells less than those before.
  void end_pass() {
    if (fullest_ == 0) return;
    whole_ = std::min({whole_ * 1.125, static_cast<double>(period_) / fullest_, longest});
  }

  /// How long from now. Nothing where there is so little that it can wait for the bell.
  std::optional<std::uint64_t> nap(std::uint64_t now) const {
    constexpr double wanted = 1.0 / 4, little = 1.0 / 64;
    constexpr std::uint64_t least = 10'000, most = 1'000'000;
    const auto due = static_cast<std::uint64_t>(whole_ * wanted);
    if (fullest_ < little || due > most) return std::nullopt;
    return std::max(due, now - began_ + least) - (now - began_);
  }

 private:
  static constexpr double longest = 1e9;

  std::uint64_t began_ = 0, period_ = 0;
  double whole_ = longest;  // how long the fullest ring takes to be full
  double fullest_ = 0;      // the part of it that the pass found
};

}  // namespace cmt::collector
