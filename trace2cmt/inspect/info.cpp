#include "trace2cmt/inspect/info.h"

#include <algorithm>

#include "cmt/error.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/sections.h"
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

void add_block(Layout& layout, const Section& section) {
  const BlockHeader block = take_fields(section, BlockHeader::take);
  ++layout.blocks;
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

/// `index`: the blocks of the stream, empty where the end of the file is missing.
Layout layout_of(const TraceFile& file, const std::vector<cmt::BlockStart>& index) {
  Layout layout;
  auto section = section_at(file, file_header_size(file.at(0, 16)).value());
  for (; section; section = section_at(file, section->end())) {
    if (!section->is(SectionType::block)) continue;
    if (layout.blocks < index.size() && index[layout.blocks].offset != section->offset) break;
    add_block(layout, *section);
  }
  if (layout.blocks < index.size()) throw WireError(index[layout.blocks].offset, "no block where the index says");
  layout.other_bytes = file.size();
  for (const StreamSize& stream : layout.streams) layout.other_bytes -= stream.bytes;
  return layout;
}

/// The last time in the last block, or before it.
std::uint64_t last_time_of(cmt::Reader& reader) {
  const cmt::BlockStart last = reader.blocks().back();
  std::uint64_t last_ns = last.time_ns;
  reader.seek(last.first_event);
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) last_ns = event.time_ns == cmt::unknown ? last_ns : event.time_ns;
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
    if (info.header.has_times && !reader.blocks().empty()) info.last_time_ns = last_time_of(reader);
  } else {
    count_events(reader, info);
  }
  if (!file.is_cmt()) return info;
  info.layout = in_file(file, [&] { return layout_of(file, reader.blocks()); });
  for (StreamSize& stream : info.layout->streams) stream.bytes_per_event = info.per_event(stream.bytes);
  return info;
}

}  // namespace trace2cmt
