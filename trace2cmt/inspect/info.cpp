#include "trace2cmt/inspect/info.h"

#include <algorithm>

#include "cmt/error.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/columns.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/ledger.h"

namespace trace2cmt {
namespace {

using namespace cmt::format;

/// Runs `step`. An error in it becomes one with the place in the file.
template <typename Step>
auto in_file(const TraceFile& file, const Step& step) {
  try {
    return step();
  } catch (const WireError& error) {
    throw cmt::FormatError(file.place(error.offset()), error.what());
  }
}

/// The offsets of the blocks of the stream, found by going from section to section.
std::vector<std::uint64_t> walked_blocks(const TraceFile& file) {
  std::vector<std::uint64_t> offsets;
  auto section = section_at(file, file_header_size(file.at(0, 16)).value());
  for (; section; section = section_at(file, section->end())) {
    if (section->is(SectionType::block)) offsets.push_back(section->offset);
  }
  return offsets;
}

void add_block(Layout& layout, const Section& section) {
  const BlockHeader block = take_fields(section, BlockHeader::take);
  ++layout.blocks;
  layout.last_block = section.offset;
  layout.keyframes += block.keyframe;
  for (const StreamStart& stream : block.streams) {
    const auto at = std::lower_bound(layout.streams.begin(), layout.streams.end(), stream.id,
                                     [](const StreamSize& each, std::uint64_t id) { return each.id < id; });
    const bool known = at != layout.streams.end() && at->id == stream.id;
    StreamSize& size = known ? *at : *layout.streams.insert(at, {.id = stream.id});
    size.raw_bytes += stream.raw_size;
    size.bytes += stream.size;
  }
}

Layout layout_of(const TraceFile& file) {
  Layout layout;
  const auto indexed = indexed_blocks(file);
  for (const std::uint64_t offset : indexed ? indexed->offsets : walked_blocks(file)) {
    const auto section = section_at(file, offset);
    if (!section || !section->is(SectionType::block)) throw WireError(offset, "no block where the index says");
    add_block(layout, *section);
  }
  layout.other_bytes = file.size();
  for (const StreamSize& stream : layout.streams) layout.other_bytes -= stream.bytes;
  return layout;
}

/// The last time in a block's stream of times, or the last one before the block.
std::uint64_t last_time_in(std::string_view frame, std::uint64_t raw_size, const BlockHeader& block) {
  std::string raw;
  Decompressor().decompress(frame, raw_size, raw);
  std::vector<cmt::Event> events(block.events);
  TimeDecoder times;
  times.start(raw, block.time_ns);
  if (!raw.empty()) times.fill(events);
  std::uint64_t last_ns = block.time_ns;
  for (const cmt::Event& event : events) last_ns = event.time_ns == cmt::unknown ? last_ns : event.time_ns;
  return last_ns;
}

/// The last time of the block at an offset, or the last one before it.
std::uint64_t last_time_of(const TraceFile& file, std::uint64_t block_offset) {
  const Section section = section_at(file, block_offset).value();
  const BlockHeader block = take_fields(section, BlockHeader::take);
  std::uint64_t offset = section.end() - section.start.body_size;
  std::uint64_t last_ns = block.time_ns;
  for (const StreamStart& stream : block.streams) {
    if (stream.id == static_cast<std::uint64_t>(StreamId::times)) {
      last_ns = at_offset(offset, [&] { return last_time_in(file.at(offset, stream.size), stream.raw_size, block); });
    }
    offset += stream.size;
  }
  return last_ns;
}

void count_events(cmt::Reader& reader, Info& info) {
  cmt::Ledger ledger;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) {
      if (event.time_ns != cmt::unknown) info.last_time_ns = event.time_ns;
      if (!ledger.book(event).accepted) ledger.totals().repairs.add(cmt::Repair::contradiction);
    }
  }
  info.totals = ledger.totals();
  info.totals.repairs += reader.repairs();
  info.totals.truncated = info.cut_off = reader.truncated();
}

}  // namespace

Info info_of(const TraceFile& file) {
  cmt::ReadOptions options;
  options.addresses = options.usable = false;
  cmt::Reader reader = file.reader(options);
  Info info;
  info.file = file.name();
  info.file_bytes = file.size();
  info.header = reader.header();
  info.totals_stated = reader.totals().has_value();
  if (info.totals_stated) {
    info.totals = *reader.totals();
  } else {
    count_events(reader, info);
  }
  if (!file.is_cmt()) return info;
  info.layout = in_file(file, [&] { return layout_of(file); });
  for (StreamSize& stream : info.layout->streams) stream.bytes_per_event = info.per_event(stream.bytes);
  if (info.header.has_times && info.layout->blocks != 0) {
    info.last_time_ns = in_file(file, [&] { return last_time_of(file, info.layout->last_block); });
  }
  return info;
}

}  // namespace trace2cmt
