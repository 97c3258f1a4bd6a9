#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmtreport/model/measures.h"

namespace cmt::report {

/// A stack, or another set of allocations that are counted together.
using KeyId = std::uint32_t;

/// The measures of some stacks in one interval, in few bytes: of a stack its number, which measures are not 0, and
/// these as numbers of variable length. Some 12 bytes a stack.
class PackedChanges {
 public:
  void append(KeyId key, const Measures& measures);

  /// Calls `visit(key, measures)` for each, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    Cursor cursor{bytes_};
    while (!cursor.rest.empty()) {
      const auto key = static_cast<KeyId>(cursor.number());
      visit(key, cursor.measures());
    }
  }

  bool empty() const { return bytes_.empty(); }
  void shrink() { bytes_.shrink_to_fit(); }

 private:
  struct Cursor {
    std::string_view rest;
    std::uint64_t number();
    Measures measures();
  };

  std::string bytes_;
};

}  // namespace cmt::report
