// trace2cmt --info: of a whole .cmt, reads headers of blocks, index and totals only, so it is fast for a large file.

#include "trace2cmt/inspect/info.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "cmt/error.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/format/sections.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/text/format.h"
#include "libcmt/text/utf8.h"
#include "libcmt/trace/writer/ledger.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/trace/slice.h"

namespace cmt::trace2cmt {
namespace {

using namespace cmt::format;
using cmt::output::bytes_text;
using cmt::output::counted;
using cmt::output::fixed;
using cmt::output::time_text;
using cmt::output::with_commas;

/// Counts touched pages, event by event. Memory: the memory of TouchedPages.
class TouchCounter {
 public:
  explicit TouchCounter(std::uint64_t touched_min) { counts_.touched_min = touched_min; }

  /// `entry` is the ledger's entry of the event.
  void count(const cmt::Event& event, const cmt::Ledger::Entry& entry);

  /// `live` has the blocks that live at the end. `is_end_unknown`: the trace ends before its program has reported
  /// the pages that these got last. To be called once.
  TouchCounts finish(const cmt::format::LiveBlocks& live, bool is_end_unknown);

 private:
  void count_run(const cmt::Event& event, const cmt::format::LiveBlock& block);
  void count_block(const cmt::format::LiveBlock& block, bool is_end_unknown = false);

  TouchCounts counts_;
  cmt::heap::TouchedPages pages_;
};

void TouchCounter::count(const cmt::Event& event, const cmt::Ledger::Entry& entry) {
  if (!entry.accepted || !entry.old_known || entry.old.size < counts_.touched_min) return;
  assert(entry.old.tag == event.old_tag);
  if (cmt::names_pages(event.kind)) return count_run(event, entry.old);
  if (!event.ends_block()) return;
  count_block(entry.old);
  pages_.end_block(entry.old.tag);
}

void TouchCounter::count_run(const cmt::Event& event, const cmt::format::LiveBlock& block) {
  constexpr std::uint64_t page = 4096;
  std::uint64_t bytes = 0;
  pages_.add(event, cmt::heap::bytes_of(event, block.address, block.size), block.size,
             [&](std::uint64_t begin, std::uint64_t end, bool added) { bytes += added ? begin - end : end - begin; });
  if (event.kind == cmt::Kind::resident) {
    counts_.resident_bytes += bytes;
    return;
  }
  counts_.touched_bytes += bytes;
  counts_.touched_pages += (bytes + page - 1) / page;
}

void TouchCounter::count_block(const cmt::format::LiveBlock& block, bool is_end_unknown) {
  std::uint64_t untouched = 0;
  pages_.for_each_gap(block.tag, block.size, [&](std::uint64_t begin, std::uint64_t end) { untouched += end - begin; });
  assert(untouched <= block.size);
  ++counts_.blocks;
  counts_.bytes += block.size;
  if (is_end_unknown) {
    counts_.unknown_bytes += untouched;
    return;
  }
  counts_.untouched_bytes += untouched;
  counts_.untouched_blocks += untouched == block.size;
}

TouchCounts TouchCounter::finish(const cmt::format::LiveBlocks& live, bool is_end_unknown) {
  live.for_each([&](const cmt::format::LiveBlock& block) {
    if (block.size >= counts_.touched_min) count_block(block, is_end_unknown);
  });
  return counts_;
}

void add_block(Layout& layout, const Section& section) {
  const BlockHeader block = take_fields(section, BlockHeader::take);
  std::uint64_t left = section.start.body_size;
  const auto fail = [&] { throw WireError(section.offset, "the sizes of the streams do not add up to the body"); };
  for (const StreamStart& stream : block.streams) {
    if (stream.size > left) fail();
    left -= stream.size;
  }
  if (left != 0) fail();
  ++layout.blocks;
  layout.keyframes += block.keyframe;
  for (const std::string& pool : block.pools) {
    if (std::find(layout.pools.begin(), layout.pools.end(), pool) == layout.pools.end()) layout.pools.push_back(pool);
  }
  for (const StreamStart& stream : block.streams) {
    const auto at = std::lower_bound(layout.streams.begin(), layout.streams.end(), stream.id,
                                     [](const StreamSize& each, std::uint64_t id) { return each.id < id; });
    const bool known = at != layout.streams.end() && at->id == stream.id;
    StreamSize& size = known ? *at : *layout.streams.insert(at, {.id = stream.id});
    size.raw_bytes += stream.raw_size;
    size.bytes += stream.size;
  }
}

/// `index` has the blocks of the stream; it is empty if the end of the file is missing.
Layout layout_of(const TraceFile& file, const std::vector<cmt::BlockStart>& index) try {
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
} catch (const WireError& error) {
  throw cmt::FormatError(file.place(error.offset()), error.what());
}

void note_end(const cmt::Event& event, Info& info) {
  if (event.time_ns != cmt::unknown) info.last_time_ns = event.time_ns;
  if (event.kind == cmt::Kind::mark && event.label.starts_with(cmt::ended_by_label))
    info.ended_by = event.label.substr(cmt::ended_by_label.size());
}

/// Notes the last time in the last block, or before it, and the signal that ended the program.
void read_last_block(cmt::Reader& reader, Info& info) {
  assert(!reader.blocks().empty());
  const cmt::BlockStart last = reader.blocks().back();
  if (info.header.has_times) info.last_time_ns = last.time_ns;
  reader.seek(last.first_event);
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) note_end(event, info);
  }
}

/// Counts the totals, if the file states none, and touched pages.
void count_events(cmt::Reader& reader, Info& info) {
  cmt::Ledger ledger;
  const bool has_touches = info.header.touched_min() != 0;
  if (info.totals_stated) reader.seek(0);
  TouchCounter touches(info.header.touched_min());
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) {
      note_end(event, info);
      const cmt::Ledger::Entry entry = ledger.book(event);
      if (!entry.accepted) ledger.totals().repairs.add(cmt::Repair::contradiction);
      if (has_touches) touches.count(event, entry);
    }
  }
  if (has_touches)
    info.touches = touches.finish(
        ledger.live(), cmt::trace::may_end_early(info.header) || reader.truncated() || !info.ended_by.empty());
  if (info.totals_stated) return;
  info.totals = ledger.totals();
  info.totals.repairs += reader.repairs();
  info.totals.truncated = info.cut_off = reader.truncated();
}

/// Metadata may hold control characters, which a terminal should not get.
std::string printable(std::string_view text) {
  std::string quoted;
  cmt::text::append_string(quoted, cmt::text::to_utf8(text));
  assert(quoted.size() >= 2 && quoted.front() == '"' && quoted.back() == '"');
  return quoted.substr(1, quoted.size() - 2);
}

/// "FROM:TO", times of the recording, of which the trace has the last part.
std::string kept_text(std::string_view value) {
  const auto range = cmt::trace::SliceRange::parse(value);
  if (!range || !range->from || !range->to || range->unit != cmt::trace::SliceBound::Unit::time)
    return printable(value);
  return "the last " + time_text(static_cast<double>(range->to->value - range->from->value)) + " of " +
         time_text(static_cast<double>(range->to->value));
}

std::string recorded_text(const cmt::Header& header) {
  std::string text = "calls";
  if (header.has_addresses) text += ", addresses";
  if (header.has_times) text += ", times";
  if (header.has_usable) text += ", usable sizes";
  if (header.has_stacks) text += ", call stacks";
  if (header.touched_min() != 0) text += ", touched pages of blocks from " + bytes_text(header.touched_min());
  return text;
}

StackCounts counts_of(const cmt::StackTable& stacks) {
  StackCounts counts{stacks.module_count() - 1u, stacks.frame_count() - 1u, 0, stacks.node_count() - 1u};
  for (cmt::FrameId frame = 1; frame < stacks.frame_count(); ++frame)
    counts.named_frames += !stacks.names(frame).empty();
  return counts;
}

std::string stacks_text(const StackCounts& stacks) {
  return counted(stacks.nodes, "node") + " of " + counted(stacks.frames, "frame") + " (" +
         with_commas(stacks.named_frames) + " with names) in " + counted(stacks.modules, "module");
}

/// The collector looks at the threads every 20 ms or less often, and cannot look at a process that has ended.
std::string run_text(const cmt::RunStretch& sum) {
  const auto text = [](std::uint64_t ns) { return time_text(static_cast<double>(ns)); };
  const std::string until = text(sum.elapsed_ns) + " until the last look at the threads";
  if (sum.ran_ns + sum.waited_ns + sum.held_ns == 0) return until + "; they were not seen to run";
  return until + "; they ran for " + text(sum.ran_ns) + ", waited " + text(sum.waited_ns) + " for a processor, " +
         text(sum.held_ns) + " for the recorder";
}

std::string touches_text(const TouchCounts& touches) {
  std::string text = bytes_text(touches.touched_bytes) + " on " + counted(touches.touched_pages, "page") + " of 4 KiB";
  if (touches.resident_bytes == 0) return text;
  return text + "; " + bytes_text(touches.resident_bytes) + " may have been in memory before: not known";
}

std::string untouched_text(const TouchCounts& touches) {
  const std::uint64_t maybe = touches.resident_bytes + touches.unknown_bytes;
  const std::string most = maybe == 0 ? "" : " to " + bytes_text(touches.untouched_bytes + maybe);
  return bytes_text(touches.untouched_bytes) + most + " of " + bytes_text(touches.bytes) + " in " +
         counted(touches.blocks, "block") + ", of which " + with_commas(touches.untouched_blocks) + " wholly";
}

std::string pools_text(const std::vector<std::string>& pools) {
  std::string text;
  for (const std::string& pool : pools) text += (text.empty() ? "" : ", ") + printable(pool);
  return text;
}

std::string without_heading(const cmt::output::Table& table) {
  const std::string text = table.text();
  return text.substr(text.find('\n') + 1);
}

std::string facts_text(const Info& info) {
  const cmt::Totals& totals = info.totals;
  cmt::output::Table table({"", ""}, {0, 1});
  const auto add = [&](const std::string& what, const std::string& value) { table.add({"  " + what, value}); };
  const std::string memory = cmt::command::memory_text(info.header);
  for (const auto& [key, value] : info.header.metadata) {
    const bool is_memory = key == "memory" && !memory.empty();
    add(printable(key), key == "kept" ? kept_text(value) : is_memory ? memory : printable(value));
  }
  const bool sampled = info.header.sampled() != 0;
  if (sampled) add("blocks", cmt::command::sampling_text(info.header) + "; the sums are of the samples alone");
  if (totals.samples_lost != 0)
    add("lost", counted(totals.samples_lost, "sample") + ", for which the recorder had no room");
  add("recorded", recorded_text(info.header));
  if (totals.events == 0) return without_heading(table);
  if (!info.ended_by.empty()) add("ended by", printable(info.ended_by));
  if (info.last_time_ns) add("last event", "at " + time_text(static_cast<double>(*info.last_time_ns)));
  if (info.run_times.stretches != 0) add("elapsed", run_text(info.run_times.sum));
  add("threads", with_commas(totals.threads));
  add(sampled ? "samples made" : "allocated",
      bytes_text(totals.allocated_bytes) + " in " + counted(totals.allocations, "block"));
  add(sampled ? "peak of samples" : "peak live",
      bytes_text(totals.peak_live_bytes) + " at event " + with_commas(totals.peak_live_bytes_event));
  add(sampled ? "most samples" : "most live", counted(totals.peak_live_blocks, "block") + " at once");
  add(sampled ? "samples at end" : "live at end",
      bytes_text(totals.end_live_bytes) + " in " + counted(totals.end_live_blocks, "block"));
  if (info.stacks.nodes != 0) add("call stacks", stacks_text(info.stacks));
  if (info.touches) add("touched", touches_text(*info.touches));
  if (info.touches) add("never touched", untouched_text(*info.touches));
  if (info.layout && !info.layout->pools.empty()) add("pools", pools_text(info.layout->pools));
  add("refused", with_commas(totals.failed));
  const std::uint64_t lost = cmt::command::lost_events(info.header, totals.repairs);
  add("repairs", with_commas(totals.repairs.total()) +
                     (lost == 0 ? "" : ", of which " + with_commas(lost) + " are events that the recorder has lost"));
  return without_heading(table);
}

std::string kinds_text(const cmt::Totals& totals) {
  cmt::output::Table table({"  kind", "events"});
  cmt::output::by_name(totals.by_kind, cmt::kind_name).for_each([&](std::string_view kind, std::uint64_t events) {
    table.add({"  " + std::string(kind), with_commas(events)});
  });
  return table.text();
}

std::string layout_text(const Info& info) {
  const Layout& layout = *info.layout;
  const auto per_event = [&](std::uint64_t bytes) { return fixed(info.per_event(bytes), 3); };
  cmt::output::Table table({"  stream", "before zstd", "bytes", "before, an event", "an event"});
  for (const StreamSize& stream : layout.streams) {
    table.add({"  " + stream.name(), with_commas(stream.raw_bytes), with_commas(stream.bytes),
               per_event(stream.raw_bytes), per_event(stream.bytes)});
  }
  table.add({"  the rest", "", with_commas(layout.other_bytes), "", per_event(layout.other_bytes)});
  return table.text() + "  in " + counted(layout.blocks, "block") + " of the stream, with " +
         counted(layout.keyframes, "keyframe") + "\n";
}

}  // namespace

Info info_of(const TraceFile& file, unsigned jobs) {
  cmt::ReadOptions options;
  options.usable = false;
  options.stacks = true;
  options.threads = jobs;
  cmt::Reader reader = file.reader(options);
  Info info;
  info.file = file.name();
  info.file_bytes = file.size();
  info.header = reader.header();
  info.totals_stated = reader.totals().has_value();
  if (info.totals_stated) {
    info.totals = *reader.totals();
    const bool has_marks = info.totals.by_kind[static_cast<std::size_t>(cmt::Kind::mark)] != 0;
    if ((info.header.has_times || has_marks) && !reader.blocks().empty()) read_last_block(reader, info);
  }
  if (!info.totals_stated || info.header.touched_min() != 0) count_events(reader, info);
  info.run_times.stretches = reader.stretches().size();
  for (const cmt::RunStretch& stretch : reader.stretches()) info.run_times.sum += stretch;
  reader.read_stacks();
  info.stacks = counts_of(reader.stacks());
  info.header.has_stacks |= info.stacks.nodes != 0;
  if (!file.is_cmt()) return info;
  info.layout = layout_of(file, reader.blocks());
  for (StreamSize& stream : info.layout->streams) stream.bytes_per_event = info.per_event(stream.bytes);
  return info;
}

std::string StreamSize::name() const {
  constexpr std::array<const char*, 10> names{"core",         "addresses",  "live_blocks",       "times",
                                              "usable_sizes", "stacks",     "stack_definitions", "origins",
                                              "pool_stacks",  "frame_names"};
  if (id - 1 < names.size()) return names[id - 1];
  return "stream " + std::to_string(id);
}

double Info::per_event(std::uint64_t bytes) const {
  return totals.events == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(totals.events);
}

std::vector<MetadataEntry> Info::metadata() const {
  std::vector<MetadataEntry> entries;
  for (const auto& [key, value] : header.metadata) entries.push_back({key, value});
  return entries;
}

std::string to_text(const Info& info) {
  const bool is_empty = info.totals.events == 0;
  std::string text = info.file + ": " + std::string(name(info.header.format)) + ", " +
                     counted(info.totals.events, "event") + " in " + counted(info.file_bytes, "byte");
  text += is_empty ? "\n  " + command::missing_end(info.file, false, "the trace is empty") + "\n"
                   : ", " + fixed(info.per_event(info.file_bytes), 3) + " an event\n";
  if (info.cut_off) text += "  breaks off: the figures are of what is whole\n";
  if (info.totals.truncated && !info.cut_off) text += "  the recording broke off\n";
  text += facts_text(info);
  if (is_empty) return text;
  text += kinds_text(info.totals);
  return info.layout ? text + layout_text(info) : text;
}

std::string to_json(const Info& info) {
  cmt::output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.info/1");
  cmt::output::write_fields(json, info);
  if (info.header.sampled() != 0) {
    cmt::output::write_fields(json, SampleTotals{info.header.sampled(), info.totals});
  } else {
    cmt::output::write_fields(json, info.totals);
  }
  cmt::output::write_fields(json, info.stacks);
  if (info.run_times.stretches != 0) cmt::output::write_fields(json, info.run_times);
  if (info.touches) cmt::output::write_fields(json, *info.touches);
  if (info.layout) cmt::output::write_fields(json, *info.layout);
  json.end_object();
  return json.take();
}

}  // namespace cmt::trace2cmt
