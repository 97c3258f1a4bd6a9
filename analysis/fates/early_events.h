/// Finds out about blocks that were live before a slice of a .cmt, if reading begins at a keyframe with origins
/// (toolkit/trace/late_start.h).
///
/// Origins contain the call and the time that made each live block. They do not contain the number of that event, nor
/// whether the block's thread had an event since. The age of a block that ends in the slice needs the first, and
/// whether it is temporary needs the second. So the blocks of the stream with those allocations are decoded, without
/// addresses. Times are decoded only if ages are times:
///
///     file     | made <7> |          | made <9> | origins  |  slice: free(<9>), free(<7>)
///     read         core                  core      all     |  all
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/heap/clock.h"

namespace cmt::analysis {

/// A block that was live at a late start and has ended since.
struct EarlyEnd {
  Tag tag = 0;
  std::uint64_t born = unknown, ended = 0;  ///< by the clock
  std::size_t place = 0;                    ///< the index of its counter
  std::uint32_t thread = 0;                 ///< the thread that made it
  bool is_temporary = false;                ///< if its thread had no event between the block's and the late start
};

/// The events before a late start. Opens the trace again to read them.
class EarlyEvents {
 public:
  /// `end`: the number of the first event after them. Borrows `path`.
  EarlyEvents(const std::string& path, std::uint64_t end, heap::Clock::Unit clock)
      : path_(path), end_(end), unit_(clock) {}

  /// Returns the first block that the trace makes; 0 if no event before `end` makes one.
  Tag find_first_tag() const;

  /// Returns the time of the last event before `end`; unknown if it has none.
  std::uint64_t last_time_ns() const;

  /// Fills in when the blocks were made, and whether they are temporary. Sorts them by tag. Throws FormatError.
  void complete(std::vector<EarlyEnd>& ends);

 private:
  Reader open(bool times) const;
  Tag find_first_tag(Reader& reader) const;

  const std::string& path_;
  std::uint64_t end_;
  heap::Clock::Unit unit_;
};

}  // namespace cmt::analysis
