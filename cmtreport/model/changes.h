/// The measures of stacks in one interval, in few bytes, since a report keeps some for each stack and interval.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "cmtreport/model/measures.h"
#include "libcmt/format/coding.h"

namespace cmt::report {

/// The number of a stack, or of another set of allocations that are counted together.
using KeyId = std::uint32_t;

/// Measures of one stack and interval, most of which are 0.
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

/// Returns measures in few bytes: a number whose bits name the measures that are not 0, and these measures.
std::string packed(const Measures& measures);

/// Replaces `measures` by packed ones, and moves `at` after these.
inline void take_measures(const char*& at, SparseMeasures& measures) {
  for (std::uint32_t left = measures.present; left != 0; left &= left - 1)
    measures.all.at(static_cast<std::size_t>(std::countr_zero(left))) = 0;
  measures.present = static_cast<std::uint32_t>(format::take_own_varint(at));
  for (std::uint32_t left = measures.present; left != 0; left &= left - 1) {
    const std::uint64_t number = format::take_own_varint(at);
    measures.all.at(static_cast<std::size_t>(std::countr_zero(left))) = format::unzigzag(number);
  }
}

/// Moves `at` after packed measures.
inline void skip_measures(const char*& at) {
  for (std::uint64_t left = format::take_own_varint(at); left != 0; left &= left - 1) format::skip_own_varint(at);
}

/// The measures of some stacks in one interval: each stack's number and its packed measures. Some 12 bytes a stack.
class PackedChanges {
 public:
  void append(KeyId key, const Measures& measures);

  /// Calls `visit(key, measures)` with SparseMeasures for each, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    SparseMeasures measures;
    for_each_key([&](KeyId key, const char*& at) {
      take_measures(at, measures);
      visit(key, measures);
    });
  }

  /// Calls `visit(key, bytes)` with the bytes of the packed measures.
  template <class Visit>
  void for_each_packed(Visit visit) const {
    for_each_key([&](KeyId key, const char*& at) {
      const char* const begin = at;
      skip_measures(at);
      visit(key, std::string_view(begin, static_cast<std::size_t>(at - begin)));
    });
  }

  void clear() { bytes_.clear(); }

 private:
  /// `take(key, at)` moves `at` after the key's measures.
  template <class Take>
  void for_each_key(Take take) const {
    const char* at = bytes_.data();
    for (const char* const end = at + bytes_.size(); at != end;) {
      const auto key = static_cast<KeyId>(format::take_own_varint(at));
      take(key, at);
      assert(at <= end);
    }
  }

  std::string bytes_;
};

}  // namespace cmt::report
