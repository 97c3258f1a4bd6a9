#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cmt/event.h"
#include "sink.h"

namespace trace2cmt {

/// malloc, realloc and free of one thread: all that older forms can say.
struct PlainCall {
  enum class Kind { none, malloc, realloc, free };

  Kind kind = Kind::none;
  std::uint64_t size = 0;  ///< 1 or more, for malloc and realloc
  cmt::Tag tag = 0;
  cmt::Tag old_tag = 0;
};

/// What becomes of an event that a form of plain calls cannot say as it was. The words are in plain_calls.cpp, and the
/// table of the manual page says the same.
enum class Loss : std::uint8_t {
  refused,
  null_block,
  unknown_freed,
  unknown_resized,
  no_call,
  other_kind,
  alignment,
  size_zero,
  size_large,
  thread,
  too_old,
  alive_at_end,
};
inline constexpr std::size_t loss_count = 12;

/// Turns events into the nearest plain calls, and counts what is lost by that.
class PlainCalls {
 public:
  explicit PlainCalls(std::uint64_t size_limit) : size_limit_(size_limit) {}

  /// `old_known`: the block that the event was given is alive in the trace.
  PlainCall nearest(const cmt::Event& event, bool old_known);

  void count(Loss loss) { ++losses_[static_cast<std::size_t>(loss)]; }

  /// One line for each kind of loss that there was.
  void report(std::string_view form, const Say& say) const;

 private:
  PlainCall::Kind kind_of(const cmt::Event& event, bool old_known);
  std::uint64_t size_of(const cmt::Event& event);
  void count_details(const cmt::Event& event);

  std::uint64_t size_limit_;
  std::array<std::uint64_t, loss_count> losses_{};
};

}  // namespace trace2cmt
