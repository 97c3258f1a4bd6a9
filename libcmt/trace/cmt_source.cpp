#include "trace/cmt_source.h"

#include "format/wire.h"

namespace cmt {

using format::SectionStart;
using format::SectionType;
using format::StreamId;
using format::WireError;

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
  const SectionStart start = format::take_section_start(tail_section);
  if (start.type != static_cast<std::uint32_t>(SectionType::tail) || start.header_size != 16) return;
  section_offset_ = input_->size() - format::tail_size;
  const format::Tail tail = format::take_tail(format::take_section_header(tail_section, start));
  if (tail.totals_offset > section_offset_) throw WireError(0, "the totals lie behind the file's end");
  const std::string section = input_->at(tail.totals_offset, section_offset_ - tail.totals_offset);
  section_offset_ = tail.totals_offset;
  totals_ = format::take_totals(format::take_section_header(section, format::take_section_start(section)));
}

std::span<const Event> CmtSource::read() {
  try {
    std::size_t count = 0;
    while (core_ == nullptr || (count = core_->next(batch_)) == 0) {
      if (at_end_ || !next_block()) return {};
    }
    const std::span<Event> events(batch_.data(), count);
    for (Event& event : events) {
      if (options_.addresses) addresses_.fill(event);
      if (options_.times) times_.fill(event);
      if (options_.usable) usable_.fill(event);
    }
    events_ += count;
    return events;
  } catch (const WireError& error) {
    fail(error);
  }
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
  if (start.body_size > format::stream_size_limit) throw WireError(8, "a section's body above its limit");
  section = input_->peek(start.total()).substr(0, start.total());
  if (section.size() < start.total()) {
    format::take_section_start(section);
    cut_off("a block is cut off");
    return false;
  }
  const std::string_view header = format::take_section_header(section, start);
  switch (static_cast<SectionType>(start.type)) {
    case SectionType::block:
      take_block(section, start);
      break;
    case SectionType::totals:
      totals_ = format::take_totals(header);
      truncated_ = totals_->truncated;
      repairs_ = totals_->repairs;
      break;
    case SectionType::tail:
      at_end_ = true;
      break;
    case SectionType::index:
      format::take_index(header);
      break;
    default:
      break;  // of a later minor extension: skipped whole
  }
  input_->skip(start.total());
  return !at_end_;
}

void CmtSource::take_block(std::string_view section, const SectionStart& start) {
  block_ = format::BlockHeader::take(format::take_section_header(section, start));
  if (block_.first_event != events_) throw WireError(0, "blocks are missing before this one");
  open_streams(section.substr(start.total() - start.body_size));
}

/// The content of a stream, or nothing where the block has none of this kind.
std::string_view CmtSource::stream(StreamId id, std::string_view body, std::string& raw) {
  std::uint64_t offset = 0;
  for (const format::StreamStart& each : block_.streams) {
    if (each.size > body.size() - offset) throw WireError(0, "the streams are longer than their block");
    if (each.id == static_cast<std::uint64_t>(id)) {
      decompressor_.decompress(body.substr(offset, each.size), each.raw_size, raw);
      return raw;
    }
    offset += each.size;
  }
  return {};
}

void CmtSource::open_streams(std::string_view body) {
  core_ = std::make_unique<format::CoreDecoder>(stream(StreamId::core, body, core_bytes_), block_.core, block_.events);
  if (options_.addresses) addresses_.start(stream(StreamId::addresses, body, address_bytes_), block_.keyframe);
  if (options_.times) times_.start(stream(StreamId::times, body, time_bytes_), block_.time_ns);
  if (options_.usable) usable_.start(stream(StreamId::usable, body, usable_bytes_));
}

}  // namespace cmt
