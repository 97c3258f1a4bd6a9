#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "filter.h"
#include "live_events.h"

namespace trace2cmt {

/// "FROM:TO": the events after the first FROM, up to the TO-th; or, with a unit of time (ns, us, ms, s, min, h), those
/// from FROM on and before TO. Either may be left out.
struct SliceRange {
  bool in_time = false;  ///< nanoseconds, not events
  std::uint64_t from = 0;
  std::uint64_t to = cmt::unknown;  ///< unknown: to the end
  std::string text;                 ///< as it was given

  /// Nothing where `text` is no range.
  static std::optional<SliceRange> parse(std::string_view text);
};

/// Lets a slice of a trace through. What was live before it is made first, so that the slice replays: an allocation for
/// each block, as it was when it was made, with the time that it had, and then a mark "slice FROM:TO". Lifetimes in
/// time stay true by that; those in events count from the slice's begin.
class Slice : public Filter {
 public:
  explicit Slice(SliceRange range) : range_(std::move(range)) {}

  void change(cmt::Header& header) override;
  void add(const cmt::Event& event, const Emit& emit) override;
  void finish(const Emit& emit) override;
  bool done() const override { return done_; }

 private:
  bool reached(std::uint64_t bound, const cmt::Event& event) const;
  void begin(const Emit& emit);

  SliceRange range_;
  std::uint64_t events_ = 0;
  std::uint64_t last_time_ns_ = cmt::unknown;
  bool begun_ = false;
  bool done_ = false;
  LiveEvents before_;
};

}  // namespace trace2cmt
