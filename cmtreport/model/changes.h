#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "cmtreport/model/measures.h"

namespace cmt::report {

/// A stack, or another set of allocations that are counted together.
using KeyId = std::uint32_t;

/// Measures of which most are 0.
struct SparseMeasures {
  Measures all;
  std::uint32_t present = 0;  ///< a bit for each that is not 0

  std::uint64_t operator[](Measure measure) const { return all[measure]; }
  void set(Measure measure, std::uint64_t value) {
    all[measure] = value;
    present |= std::uint32_t{value != 0} << static_cast<unsigned>(measure);
  }

  /// Calls `visit(index, value)` for each that is not 0.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t left = present; left != 0; left &= left - 1) {
      const auto index = static_cast<std::size_t>(std::countr_zero(left));
      visit(index, all.at(index));
    }
  }
  void add_to(Measures& sum) const {
    for_each([&sum](std::size_t index, std::uint64_t value) { sum.at(index) += value; });
  }
};

/// The measures of some stacks in one interval, in few bytes: of a stack its number, which measures are not 0, and
/// these as numbers of variable length. Some 12 bytes a stack.
class PackedChanges {
 public:
  void append(KeyId key, const Measures& measures);

  /// Calls `visit(key, measures)` with SparseMeasures for each, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    SparseMeasures measures;
    const char* at = bytes_.data();
    for (const char* const end = at + bytes_.size(); at != end;) {
      const auto key = static_cast<KeyId>(take_number(at));
      for (std::uint32_t left = measures.present; left != 0; left &= left - 1)
        measures.all.at(static_cast<std::size_t>(std::countr_zero(left))) = 0;
      measures.present = static_cast<std::uint32_t>(take_number(at));
      for (std::uint32_t left = measures.present; left != 0; left &= left - 1) {
        const std::uint64_t number = take_number(at);
        measures.all.at(static_cast<std::size_t>(std::countr_zero(left))) = number >> 1 ^ (0 - (number & 1));
      }
      visit(key, measures);
    }
  }

  std::size_t size_bytes() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

 private:
  static std::uint64_t take_number(const char*& at) {
    auto byte = static_cast<unsigned char>(*at++);
    std::uint64_t number = byte & 0x7fu;
    for (unsigned shift = 7; byte >= 0x80; shift += 7) {
      byte = static_cast<unsigned char>(*at++);
      number |= std::uint64_t{byte & 0x7fu} << shift;
    }
    return number;
  }

  std::string bytes_;
};

}  // namespace cmt::report
