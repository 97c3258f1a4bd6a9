#include "trace/cmt_source.h"

#include <array>
#include <cstdio>

#include "format/wire.h"

namespace cmt {

using format::SectionStart;
using format::SectionType;
using format::StreamId;
using format::WireError;

namespace {

/// Decodes the header of a section; offsets of errors are counted from the section's begin.
template <typename Take>
auto take_fields(const Take& take, std::string_view header) {
  try {
    return take(header);
  } catch (const WireError& error) {
    throw WireError(SectionStart::size + error.offset(), error.what());
  }
}

constexpr std::array<const char*, 7> stream_names{"", "core", "address", "live block", "time", "usable size", "stack"};

}  // namespace

CmtSource::CmtSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log)
    : input_(std::move(input)), options_(options), log_(log) {
  try {
    read_header();
    if (input_->can_seek()) read_totals_ahead();
  } catch (const WireError& error) {
    fail(error);
  }
}

void CmtSource::fail(const WireError& error) const {
  throw FormatError(input_->place(section_offset_ + error.offset()), error.what());
}

void CmtSource::read_header() {
  const auto size = format::file_header_size(input_->peek(format::magic.size() + 8));
  if (!size) throw WireError(0, "the file header is cut off");
  const std::string_view bytes = input_->peek(*size);
  if (bytes.size() < *size) throw WireError(0, "the file header is cut off");
  header_ = format::take_file_header(bytes.substr(0, *size));
  input_->skip(*size);
}

/// Looks for the totals where the tail says. A file without a tail has none: that is noticed again, and said, when
/// reading comes to its end.
void CmtSource::read_totals_ahead() {
  if (input_->size() < input_->offset() + format::tail_size) return;
  const std::string tail_section = input_->at(input_->size() - format::tail_size, format::tail_size);
  if (!format::is_tail(tail_section)) return;
  const SectionStart start = format::take_section_start(tail_section);
  section_offset_ = input_->size() - format::tail_size;
  const format::Tail tail = format::take_tail(format::take_section_header(tail_section, start));
  const std::uint64_t tail_offset = section_offset_;
  if (tail.totals_offset > tail_offset - SectionStart::size) throw WireError(0, "the totals lie behind the tail");
  section_offset_ = tail.totals_offset;
  const SectionStart totals = format::take_section_start(input_->at(section_offset_, SectionStart::size));
  if (totals.type != static_cast<std::uint32_t>(SectionType::totals))
    throw WireError(0, "no totals where the tail says");
  if (totals.total() > tail_offset - section_offset_) throw WireError(0, "the totals reach behind the tail");
  const std::string section = input_->at(section_offset_, totals.total());
  totals_ = take_fields(format::take_totals, format::take_section_header(section, totals));
}

/// Takes a step of decoding a stream. What is wrong in it is reported at its frame's offset, with its name and the
/// offset in what was decompressed.
template <typename Decode>
auto CmtSource::in_stream(StreamId id, const Decode& decode) {
  try {
    return decode();
  } catch (const WireError& error) {
    char at[24];
    std::snprintf(at, sizeof at, "0x%llx", static_cast<unsigned long long>(error.offset()));
    const auto number = static_cast<std::size_t>(id);
    throw WireError(frame_offsets_[number],
                    std::string(stream_names[number]) + " stream: byte " + at + ": " + error.what());
  }
}

template <typename Decoder>
void CmtSource::fill(StreamId id, Decoder& decoder, std::span<Event> events) {
  in_stream(id, [&] {
    for (Event& event : events) decoder.fill(event);
  });
}

std::span<const Event> CmtSource::read() {
  try {
    std::size_t count = 0;
    while (core_ == nullptr || (count = in_stream(StreamId::core, [&] { return core_->next(batch_); })) == 0) {
      if (core_ != nullptr) check_ends();
      if (at_end_ || !next_block()) return {};
    }
    const std::span<Event> events(batch_.data(), count);
    if (options_.addresses) fill(StreamId::addresses, addresses_, events);
    if (options_.times) fill(StreamId::times, times_, events);
    if (options_.usable) fill(StreamId::usable, usable_, events);
    events_ += count;
    return events;
  } catch (const WireError& error) {
    fail(error);
  }
}

/// Every stream ends with its block's last event.
void CmtSource::check_ends() {
  const auto check = [&](StreamId id, const auto& decoder) {
    if (decoder.at_end()) return;
    in_stream(id, [&]() -> void { throw WireError(decoder.offset(), "bytes after the last event"); });
  };
  check(StreamId::addresses, addresses_);
  check(StreamId::times, times_);
  check(StreamId::usable, usable_);
}

bool CmtSource::next_block() {
  core_.reset();
  while (core_ == nullptr) {
    if (!take_section()) return false;
  }
  return true;
}

void CmtSource::cut_off(const std::string& what) {
  at_end_ = truncated_ = true;
  if (options_.strict) log_.report(input_->place(section_offset_), what);
}

/// Reads one section whole; false at the end of the input.
bool CmtSource::take_section() {
  section_offset_ = input_->offset();
  std::string_view section = input_->peek(SectionStart::size);
  if (section.size() < SectionStart::size) {
    cut_off("the end of the trace is missing");
    return false;
  }
  const SectionStart start = format::take_section_start(section);
  const std::uint64_t head_size = start.total() - start.body_size;
  section = input_->peek(head_size).substr(0, head_size);
  if (section.size() == head_size) format::take_section_header(section, start);  // before its sizes are believed
  section = input_->peek(start.total()).substr(0, start.total());
  if (section.size() < start.total()) {
    cut_off("a section is cut off");
    return false;
  }
  const std::string_view header = format::take_section_header(section, start);
  switch (static_cast<SectionType>(start.type)) {
    case SectionType::block:
      take_block(section, start);
      break;
    case SectionType::totals:
      totals_ = take_fields(format::take_totals, header);
      truncated_ = totals_->truncated;
      repairs_ = totals_->repairs;
      break;
    case SectionType::tail:
      at_end_ = true;
      break;
    case SectionType::index:
      take_fields(format::take_index, header);
      break;
    default:
      break;  // of a later minor extension: skipped whole
  }
  input_->skip(start.total());
  if (at_end_ && !input_->peek(1).empty()) throw WireError(start.total(), "bytes after the tail");
  return !at_end_;
}

void CmtSource::take_block(std::string_view section, const SectionStart& start) {
  block_ = take_fields(format::BlockHeader::take, format::take_section_header(section, start));
  if (block_.first_event != events_) throw WireError(0, "blocks are missing before this one");
  place_frames(start);
  open_streams(section);
}

void CmtSource::place_frames(const SectionStart& start) {
  std::uint64_t offset = start.total() - start.body_size;
  frame_offsets_.fill(0);
  for (const format::StreamStart& each : block_.streams) {
    if (each.id < frame_offsets_.size()) {
      if (frame_offsets_[each.id] != 0) throw WireError(0, "a block with two streams of one kind");
      frame_offsets_[each.id] = offset;
    }
    offset += each.size;
  }
  if (offset != start.total()) throw WireError(0, "the sizes of the streams do not add up to the body");
  if (frame_offsets_[static_cast<std::size_t>(StreamId::core)] == 0)
    throw WireError(0, "a block without a core stream");
}

/// The content of a stream, or nothing where the block has none of this kind.
std::string_view CmtSource::stream(StreamId id, std::string_view section, std::string& raw) {
  const std::uint64_t offset = frame_offsets_[static_cast<std::size_t>(id)];
  for (const format::StreamStart& each : block_.streams) {
    if (each.id != static_cast<std::uint64_t>(id)) continue;
    decompressor_.decompress(section.substr(offset, each.size), each.raw_size, raw);
    return raw;
  }
  return {};
}

void CmtSource::open_streams(std::string_view section) {
  in_stream(StreamId::core, [&] {
    const std::string_view bytes = stream(StreamId::core, section, core_bytes_);
    core_ = std::make_unique<format::CoreDecoder>(bytes, block_.core, block_.events);
  });
  const auto open = [&](StreamId id, auto& decoder, std::string& raw, auto... state) {
    in_stream(id, [&] { decoder.start(stream(id, section, raw), state...); });
  };
  if (options_.addresses) open(StreamId::addresses, addresses_, address_bytes_, block_.keyframe);
  if (options_.times) open(StreamId::times, times_, time_bytes_, block_.time_ns);
  if (options_.usable) open(StreamId::usable, usable_, usable_bytes_);
}

}  // namespace cmt
