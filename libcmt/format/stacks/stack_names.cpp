// The names of stacks. Half of their bytes are the functions' texts. Frames are in the order of their first use, and
// most frames are further calls in a function that was just named, or near it. So a function with its file is a
// *place*. The section spells a place out at its first use. A later use is the difference of its number from that of
// the place before.

#include "libcmt/format/stacks/stack_names.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace cmt::format {
namespace {

constexpr std::size_t names_size_max = 1 << 27;
constexpr std::uint64_t u32_max = 0xffffffff;

/// Numbers values by their first use. A writer puts 0 for a new value, and then the value itself.
template <class Value>
class Numbering {
 public:
  /// Returns the value's number, from 1, and whether it is new.
  std::pair<std::uint64_t, bool> number(const Value& value) {
    const auto [entry, is_new] = numbers_.try_emplace(value, numbers_.size() + 1);
    return {entry->second, is_new};
  }

 private:
  std::map<Value, std::uint64_t> numbers_;
};

class NameWriter {
 public:
  explicit NameWriter(VarintWriter& out) : out_(out) {}

  void put(const FrameName& name) {
    const auto [place, is_new] = places_.number({name.function, name.file});
    out_.put(is_new ? 0 : zigzag(place - last_place_) + 1);
    last_place_ = place;
    if (is_new) {
      put_text(name.function);
      put_text(name.file);
      lines_.push_back(0);
    }
    assert(place - 1 < lines_.size());
    std::uint64_t& line = lines_[place - 1];
    out_.put(zigzag(name.line - line));
    line = name.line;
  }

 private:
  void put_text(std::string_view text) {
    const auto [number, is_new] = texts_.number(text);
    out_.put(is_new ? 0 : number);
    if (!is_new) return;
    out_.put(text.size());
    out_.put(text);
  }

  VarintWriter& out_;
  Numbering<std::pair<std::string_view, std::string_view>> places_;
  Numbering<std::string_view> texts_;
  std::vector<std::uint64_t> lines_;  // the last line of each place
  std::uint64_t last_place_ = 0;
};

class NameReader {
 public:
  explicit NameReader(Cursor& cursor) : cursor_(cursor) {}

  FrameName take() {
    const std::uint64_t at = cursor_.offset(), field = cursor_.varint();
    if (field == 0) {
      const std::string_view function = take_text();
      places_.push_back({function, take_text(), 0});
    }
    last_place_ = field == 0 ? places_.size() : last_place_ + unzigzag(field - 1);
    if (last_place_ - 1 >= places_.size()) throw WireError(at, "a place that is not there");
    FrameName& place = places_[last_place_ - 1];
    const std::uint64_t line_at = cursor_.offset(), line = place.line + unzigzag(cursor_.varint());
    if (line > u32_max) throw WireError(line_at, "a line above its limit");
    place.line = static_cast<std::uint32_t>(line);
    return place;
  }

 private:
  std::string_view take_text() {
    const std::uint64_t at = cursor_.offset(), number = cursor_.varint();
    if (number > texts_.size()) throw WireError(at, "a text that is not there");
    if (number == 0) texts_.push_back(cursor_.bytes(cursor_.varint()));
    return number == 0 ? texts_.back() : texts_[number - 1];
  }

  Cursor& cursor_;
  std::vector<FrameName> places_;  // with the last line of each
  std::vector<std::string_view> texts_;
  std::uint64_t last_place_ = 0;
};

/// Puts the names of a frame. `last`: the frame before, or 0.
void put_frame(VarintWriter& out, NameWriter& writer, std::size_t frame, std::size_t& last,
               std::span<const FrameName> names) {
  out.put(frame - last);
  last = frame;
  out.put(names.size());
  for (const FrameName& name : names) writer.put(name);
}

/// Calls `take` with each frame, its names, and the offset of the entry.
template <class Take>
void take_named(Cursor& cursor, std::size_t size, const Take& take) {
  NameReader reader(cursor);
  std::uint64_t frame = 0;
  for (std::vector<FrameName> names; !cursor.at_end(); names.clear()) {
    const std::uint64_t at = cursor.offset();
    frame += cursor.varint(u32_max, "a step to a frame");
    if (frame == 0 || frame > u32_max) throw WireError(at, "a name of no frame");
    for (std::uint64_t count = cursor.varint(size, "a number of names"); count != 0; --count) {
      names.push_back(reader.take());
    }
    take(static_cast<FrameId>(frame), names, at);
  }
}

}  // namespace

std::string put_names(StackEncoder& stacks) {
  constexpr std::size_t frame_bytes_min = 4;
  VarintWriter out;
  stacks.put_unloaded(out);
  NameWriter writer(out);
  const auto frames = stacks.frames();
  const auto names_of = [&](FrameId frame) { return stacks.table().names(frame); };
  const auto named = std::count_if(frames.begin(), frames.end(), [&](FrameId id) { return !names_of(id).empty(); });
  const std::size_t content_min = frame_bytes_min * static_cast<std::size_t>(named);
  std::size_t last = 0;
  for (std::size_t frame = 1; frame < frames.size() && out.size() < names_size_max; ++frame) {
    const auto names = names_of(frames[frame]);
    if (names.empty()) continue;
    // Readers of 0.1.0 refuse a step above the size of the content. Frames with no names divide such a step.
    for (std::size_t most; frame - last > (most = std::max(content_min, out.size()));)
      put_frame(out, writer, last + most, last, {});
    put_frame(out, writer, frame, last, names);
  }
  return out.size() > 1 ? out.take() : std::string();
}

std::string put_frame_names(const StackEncoder& stacks) {
  const StackTable& table = stacks.table();
  VarintWriter out;
  NameWriter writer(out);
  const auto frames = stacks.frames();
  std::size_t last = 0;
  for (std::size_t frame = stacks.first_new_frame(); frame < frames.size() && out.size() < names_size_max; ++frame) {
    const auto names = table.names(frames[frame]);
    if (names.empty() || !table.module(table.frame(frames[frame]).module).is_interpreter()) continue;
    put_frame(out, writer, frame, last, names);
  }
  return out.take();
}

void take_names(std::string_view content, StackTable& table) {
  Cursor cursor(content);
  for (std::uint64_t count = cursor.varint(); count != 0; --count) cursor.varint(), cursor.varint();
  take_named(cursor, content.size(),
             [&](FrameId frame, const std::vector<FrameName>& names, std::uint64_t) { table.set_names(frame, names); });
}

void take_frame_names(std::string_view stream, StackTable& table) {
  Cursor cursor(stream);
  take_named(cursor, stream.size(), [&](FrameId frame, const std::vector<FrameName>& names, std::uint64_t at) {
    if (frame >= table.frame_count()) throw WireError(at, "a name of no frame");
    if (table.names(frame).empty()) table.set_names(frame, names);
  });
}

void take_unloaded(std::string_view content, StackDefinitions& definitions) {
  Cursor cursor(content);
  definitions.take_unloaded(cursor);
}

}  // namespace cmt::format
