/// A part of a trace, as --slice=FROM:TO names it: by events, by time, or by marks.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"

namespace cmt::trace {

/// An end of a slice.
struct SliceBound {
  enum class Unit { events, time, mark };

  Unit unit = Unit::events;
  std::uint64_t value = 0;  ///< so many events, or nanoseconds
  std::string label{};      ///< of a mark; empty: any mark
};

/// The range of a slice, in one of four forms:
///
///     1000:2000      the events after the first 1,000, up to the 2,000th
///     1.5s:2s        with a unit of time (ns, us, ms, s, min, h): the events from FROM on and before TO
///     @load:@done    the events from the first mark "load" on, and before the first mark "done" after it
///     @load          the events from the first mark "load" on, and before the next mark: its first phase
///
/// In the others either end may be left out. Both are of one unit. A label with ":@", or with a colon at its end,
/// cannot be named.
struct SliceRange {
  SliceBound::Unit unit = SliceBound::Unit::events;
  std::optional<SliceBound> from;
  std::optional<SliceBound> to;
  std::string text;  ///< as it was given

  /// The first phase of a label, which may have any characters.
  static SliceRange phase(std::string label);
  /// Returns nothing if `text` is no range.
  static std::optional<SliceRange> parse(std::string_view text);
};

/// Whether one of the slices that a trace is a part of begins late: the header's `slice` (format-spec/text.md), where
/// blanks separate them.
bool begins_late(std::string_view slices);
/// The same of their ends.
bool ends_early(std::string_view slices);
/// Whether a trace that does not break off may still end before its program: it is such a part, or has kept events.
/// These are also written while the program runs.
bool may_end_early(const Header& header);

/// Begins the label of the mark at the start of a slice; the slice follows.
inline constexpr std::string_view slice_label = "slice ";
/// Whether an event is that mark of one of the header's slices.
bool begins_slice(const Event& event, std::string_view slices);

/// The forms of --slice, for the message about a value that is none of them.
inline constexpr std::string_view slice_form =
    "FROM:TO, FROM not above TO, in events, with a unit as in 1.5s:2s, or by marks as in @load:@done or @load";

/// Decides for each event of a trace whether it is in a slice.
class SliceProgress {
 public:
  enum class Place { before, inside, after };

  explicit SliceProgress(SliceRange range) : range_(std::move(range)) {}

  /// Throws FormatError, with the trace's path, if the range is in time and the trace has no times.
  void check(const Header& header, const std::string& path = {}) const;

  /// To be called for each event, in order.
  Place next(const Event& event);

  /// Skips the events up to this number, all before the slice. next() is not called for them.
  void skip_to(std::uint64_t event) {
    assert(event >= events_ && place_ == Place::before);
    events_ = event;
  }

  /// Whether it is known that no later event is in the slice. Then the rest need not be read.
  bool has_all() const {
    return range_.to && range_.to->unit == SliceBound::Unit::events && events_ >= range_.to->value;
  }

  /// To be called after the last event. Returns whether the slice has begun. Throws FormatError, with the trace's path,
  /// if the trace has no such part: it has no mark of that name, or ends before FROM.
  bool finish(const std::string& path = {});

  const SliceRange& range() const { return range_; }

 private:
  bool reaches(const SliceBound& bound, const Event& event) const;
  [[noreturn]] void refuse_mark(const std::string& path, const std::string& label, const char* where) const;

  SliceRange range_;
  std::uint64_t events_ = 0;
  Place place_ = Place::before;
  std::vector<std::string> labels_;  ///< of the first marks, each once, for a message
  bool has_more_labels_ = false;
};

}  // namespace cmt::trace
