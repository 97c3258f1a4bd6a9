/// Events as calls of malloc, realloc and free, for the output forms that know no others: legacy, rep and heaptrack.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cmt/event.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {

/// A call of malloc, realloc or free. The forms legacy, rep and heaptrack can express no others.
struct PlainCall {
  enum class Kind { none, malloc, realloc, free };

  Kind kind = Kind::none;
  std::uint64_t size = 0;  ///< in the range, for malloc and realloc
  cmt::Tag tag = 0;
  cmt::Tag old_tag = 0;
};

/// How an event differs from the plain call that is written for it. The messages are in plain_calls.cpp, and a table of
/// the manual page has the same list.
enum class Loss : std::uint8_t {
  refused,
  null_block,
  unknown_freed,
  unknown_resized,
  no_call,
  sample,
  memory,
  pool,
  other_kind,
  alignment,
  size_zero,
  size_large,
  thread,
  too_old,
  alive_at_end,
};
inline constexpr std::size_t loss_count = 15;

/// The sizes that a form can express.
struct SizeRange {
  std::uint64_t least = 1;
  std::uint64_t most = cmt::unknown;
};

/// Turns events into the nearest plain calls, and counts the losses.
class PlainCalls {
 public:
  explicit PlainCalls(SizeRange sizes) : sizes_(sizes) {}

  /// `old_known`: the trace has the allocation of the block that the event is given.
  PlainCall nearest(const cmt::Event& event, bool old_known);

  void count(Loss loss) { ++losses_[static_cast<std::size_t>(loss)]; }

  /// Prints one line with the number of each kind of loss, if there are any.
  void report_losses(std::string_view form, const Say& say) const;

 private:
  PlainCall::Kind kind_of(const cmt::Event& event, bool old_known);
  std::uint64_t size_of(const cmt::Event& event);
  void count_details(const cmt::Event& event);

  SizeRange sizes_;
  std::array<std::uint64_t, loss_count> losses_{};
};

}  // namespace cmt::trace2cmt
