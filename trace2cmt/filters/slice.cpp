#include "slice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "cmt/error.h"

namespace trace2cmt {
namespace {

struct Bound {
  bool in_time;
  std::uint64_t value;
};

constexpr std::array<std::pair<std::string_view, double>, 6> units{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr double time_limit = 9e18;

/// "1000" or "1.5s"; nothing where it is neither.
std::optional<Bound> parse_bound(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::uint64_t events = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, events); error == std::errc() && at == end) {
    return Bound{false, events};
  }
  double number = 0;
  const auto [at, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view suffix(at, static_cast<std::size_t>(end - at));
  const auto unit = std::find_if(units.begin(), units.end(), [&](const auto& each) { return each.first == suffix; });
  if (error != std::errc() || unit == units.end() || std::signbit(number)) return std::nullopt;
  const double nanoseconds = number * unit->second;
  if (!(nanoseconds < time_limit)) return std::nullopt;
  return Bound{true, static_cast<std::uint64_t>(std::llround(nanoseconds))};
}

}  // namespace

std::optional<SliceRange> SliceRange::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view from_text = text.substr(0, colon), to_text = text.substr(colon + 1);
  const auto from = parse_bound(from_text);
  const auto to = parse_bound(to_text);
  if ((!from && !from_text.empty()) || (!to && !to_text.empty()) || (!from && !to)) return std::nullopt;
  if (from && to && (from->in_time != to->in_time || from->value > to->value)) return std::nullopt;
  SliceRange range{.in_time = (from ? *from : *to).in_time, .text = std::string(text)};
  if (from) range.from = from->value;
  if (to) range.to = to->value;
  return range;
}

void Slice::change(cmt::Header& header) {
  if (range_.in_time && !header.has_times) {
    throw cmt::FormatError("", "times were not recorded: --slice=" + range_.text + " has nothing to count");
  }
  for (auto& [key, value] : header.metadata) {
    if (key == "slice") return void(value += " " + range_.text);
  }
  header.metadata.emplace_back("slice", range_.text);
}

/// Whether an event, the next to be counted, lies at or behind a bound.
bool Slice::reached(std::uint64_t bound, const cmt::Event& event) const {
  if (!range_.in_time) return events_ >= bound;
  return event.time_ns != cmt::unknown && event.time_ns >= bound;
}

void Slice::add(const cmt::Event& event, const Emit& emit) {
  if (done_) return;
  if (!begun_ && (range_.from == 0 || reached(range_.from, event))) begin(emit);
  done_ = begun_ && range_.to != cmt::unknown && reached(range_.to, event);
  if (done_) return;
  ++events_;
  if (event.time_ns != cmt::unknown) last_time_ns_ = event.time_ns;
  begun_ ? emit(event) : before_.follow(event);
}

void Slice::begin(const Emit& emit) {
  begun_ = true;
  if (events_ == 0) return;
  std::exchange(before_, {}).allocate_again(emit);
  const std::string label = "slice " + range_.text;
  emit({.kind = cmt::Kind::mark, .time_ns = last_time_ns_, .label = label});
}

void Slice::finish(const Emit& emit) {
  if (begun_) return;
  if (range_.in_time || events_ < range_.from) {
    throw cmt::FormatError("", "the trace ends before --slice=" + range_.text);
  }
  begin(emit);
}

}  // namespace trace2cmt
