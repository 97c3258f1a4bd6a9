// Parses --slice, and compares each event with the two ends of the range.

#include "toolkit/trace/slice.h"

#include <algorithm>
#include <charconv>

#include "cmt/error.h"
#include "toolkit/command/command_line.h"

namespace cmt::trace {
namespace {

constexpr std::size_t labels_max = 8;

/// Parses "1000", "1.5s" or "@load". Returns nothing for any other text.
std::optional<SliceBound> parse_bound(std::string_view text) {
  if (text.size() > 1 && text.front() == '@') return SliceBound{SliceBound::Unit::mark, 0, std::string(text.substr(1))};
  const char* const end = text.data() + text.size();
  std::uint64_t events = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, events); error == std::errc() && at == end)
    return SliceBound{SliceBound::Unit::events, events};
  const auto nanoseconds = command::parse_duration(text);
  if (!nanoseconds) return std::nullopt;
  return SliceBound{SliceBound::Unit::time, static_cast<std::uint64_t>(*nanoseconds)};
}

/// Whether one of the slices, which blanks separate, is such.
template <class IsSuch>
bool has_slice(std::string_view slices, IsSuch is_such) {
  while (!slices.empty()) {
    const std::string_view slice = slices.substr(0, slices.find(' '));
    if (!slice.empty() && is_such(slice)) return true;
    slices.remove_prefix(std::min(slice.size() + 1, slices.size()));
  }
  return false;
}

}  // namespace

SliceRange SliceRange::phase(std::string label) {
  const std::string text = "@" + label;
  return {.unit = SliceBound::Unit::mark,
          .from = SliceBound{SliceBound::Unit::mark, 0, std::move(label)},
          .to = SliceBound{SliceBound::Unit::mark},
          .text = text};
}

std::optional<SliceRange> SliceRange::parse(std::string_view text) {
  const bool begins_at_mark = text.starts_with('@');
  std::size_t colon = text.find(begins_at_mark ? ":@" : ":");
  if (begins_at_mark && colon == std::string_view::npos) {
    if (text.size() > 1 && !text.ends_with(':')) return phase(std::string(text.substr(1)));
    colon = text.size() - 1;
  }
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view from_text = text.substr(0, colon), to_text = text.substr(colon + 1);
  SliceRange range{.from = parse_bound(from_text), .to = parse_bound(to_text), .text = std::string(text)};
  if ((!range.from && !from_text.empty()) || (!range.to && !to_text.empty()) || (!range.from && !range.to))
    return std::nullopt;
  if (range.from && range.to && (range.from->unit != range.to->unit || range.from->value > range.to->value))
    return std::nullopt;
  if (range.to && range.to->unit == SliceBound::Unit::mark && range.to->label.find(":@") != std::string::npos)
    return std::nullopt;
  range.unit = (range.from ? *range.from : *range.to).unit;
  return range;
}

bool begins_late(std::string_view slices) {
  return has_slice(slices, [](std::string_view slice) { return !slice.starts_with(":") && !slice.starts_with("0:"); });
}

bool ends_early(std::string_view slices) {
  return has_slice(slices, [](std::string_view slice) { return !slice.ends_with(":"); });
}

bool may_end_early(const Header& header) {
  return header.find("kept").has_value() || ends_early(header.find("slice").value_or(""));
}

/// Labels of marks may contain blanks, too.
bool begins_slice(const Event& event, std::string_view slices) {
  if (event.kind != Kind::mark || slices.empty() || !event.label.starts_with(slice_label)) return false;
  const std::string name(event.label.substr(slice_label.size()));
  return (" " + std::string(slices) + " ").find(" " + name + " ") != std::string::npos;
}

void SliceProgress::check(const Header& header, const std::string& path) const {
  if (range_.unit == SliceBound::Unit::time && !header.has_times)
    throw FormatError(path, "times were not recorded (needed by --slice=" + range_.text + ")");
}

bool SliceProgress::reaches(const SliceBound& bound, const Event& event) const {
  switch (bound.unit) {
    case SliceBound::Unit::events:
      return events_ >= bound.value;
    case SliceBound::Unit::time:
      return event.time_ns != unknown && event.time_ns >= bound.value;
    case SliceBound::Unit::mark:
      return event.kind == Kind::mark && (bound.label.empty() || event.label == bound.label);
  }
  return false;
}

SliceProgress::Place SliceProgress::next(const Event& event) {
  if (place_ == Place::inside) {
    if (range_.to && reaches(*range_.to, event)) place_ = Place::after;
  } else if (place_ == Place::before && (!range_.from || reaches(*range_.from, event))) {
    place_ = Place::inside;
    const bool is_of_marks = range_.unit == SliceBound::Unit::mark && range_.from;  // to the next of that name, then
    if (range_.to && !is_of_marks && reaches(*range_.to, event)) place_ = Place::after;
  }
  ++events_;
  if (range_.unit == SliceBound::Unit::mark && event.kind == Kind::mark &&
      std::find(labels_.begin(), labels_.end(), event.label) == labels_.end()) {
    has_more_labels_ = labels_.size() == labels_max;
    if (!has_more_labels_) labels_.emplace_back(event.label);
  }
  return place_;
}

void SliceProgress::refuse_mark(const std::string& path, const std::string& label, const char* where) const {
  std::string all;
  for (const std::string& each : labels_) all += (all.empty() ? "" : ", ") + ("@" + each);
  throw FormatError(path, "the trace has no mark \"" + label + "\"" + where +
                              (all.empty() ? "; it has none" : "; it has " + all + (has_more_labels_ ? ", ..." : "")));
}

bool SliceProgress::finish(const std::string& path) {
  const bool has_begun = place_ != Place::before;
  if (range_.unit == SliceBound::Unit::mark) {
    if (!has_begun && range_.from) refuse_mark(path, range_.from->label, "");
    if (range_.to && place_ != Place::after && !range_.to->label.empty())
      refuse_mark(path, range_.to->label, range_.from ? " after the start of the slice" : "");
    return has_begun;
  }
  const bool is_empty_at_end =
      range_.unit == SliceBound::Unit::events && (!range_.from || events_ >= range_.from->value);
  if (!has_begun && !is_empty_at_end) throw FormatError(path, "the trace ends before --slice=" + range_.text);
  return has_begun;
}

}  // namespace cmt::trace
