/// trace2cmt --info: the facts about a trace, as text and as JSON. The functions describe() define the JSON keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/header.h"
#include "toolkit/output/fields.h"
#include "trace2cmt/inspect/trace_file.h"

namespace cmt {

inline std::string_view kind_name(std::size_t kind) { return name(static_cast<Kind>(kind)); }
inline std::string_view repair_name(std::size_t repair) { return name(static_cast<Repair>(repair)); }

template <class Visitor, output::DescribedAs<Totals> T>
void describe(Visitor& field, T& totals) {
  field("events", totals.events, "calls, threads' starts and ends, marks, samples and touches");
  field("by_kind", output::by_name(totals.by_kind, kind_name), "events of each kind that occurs");
  field("refused_calls", output::renamed(totals.failed, "failed_calls"), "allocations that were refused");
  field("threads", totals.threads, "threads that made an event");
  field("allocated_blocks", totals.allocations, "blocks that were allocated");
  field("allocated_bytes", totals.allocated_bytes, "bytes asked for by all allocations");
  field("most_live_blocks", output::renamed(totals.peak_live_blocks, "peak_live_blocks"),
        "most blocks that were live at once, which need not be at the peak of live bytes");
  field("peak_live_bytes", totals.peak_live_bytes, "most bytes that were live at once");
  field("peak_event", output::renamed(totals.peak_live_bytes_event, "peak_live_bytes_event"),
        "the first event, from 1, at which so many bytes were live; 0: none");
  field("end_live_blocks", totals.end_live_blocks, "blocks live at the end");
  field("end_live_bytes", totals.end_live_bytes, "bytes live at the end");
  field("repairs", totals.repairs.total(), "lines and events that were dropped or altered");
  field("repairs_by_kind", output::by_name(totals.repairs.by_kind, repair_name), "repairs of each kind that occurs");
}

}  // namespace cmt

namespace cmt::trace2cmt {

/// One stream of a .cmt, over all its blocks.
struct StreamSize {
  std::uint64_t id = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t bytes = 0;
  double bytes_per_event = 0;

  /// "core", "addresses", …; "stream 9" for a stream that version 1 does not know.
  std::string name() const;
};

template <class Visitor, cmt::output::DescribedAs<StreamSize> S>
void describe(Visitor& field, S& stream) {
  field("id", stream.id, "the stream's number in the file");
  field("name", stream.name(), "the stream's name");
  field("raw_bytes", stream.raw_bytes, "size before compression");
  field("bytes", stream.bytes, "size in the file");
  field("bytes_per_event", stream.bytes_per_event, "bytes in the file per event");
}

/// How a .cmt is laid out.
struct Layout {
  std::uint64_t blocks = 0;
  std::uint64_t keyframes = 0;
  std::vector<StreamSize> streams;  ///< by rising id
  std::vector<std::string> pools;   ///< their names, in the order of their first events
  std::uint64_t other_bytes = 0;
};

template <class Visitor, cmt::output::DescribedAs<Layout> L>
void describe(Visitor& field, L& layout) {
  field("stream_blocks", layout.blocks, "blocks of the stream");
  field("keyframes", layout.keyframes, "blocks of the stream that are keyframes");
  field("streams", layout.streams, "streams over all blocks");
  field("pools", layout.pools, "names of the pools that have events");
  field("other_bytes", layout.other_bytes, "headers, index and totals");
}

/// The call stacks of a trace.
struct StackCounts {
  std::uint64_t modules = 0, frames = 0, named_frames = 0, nodes = 0;
};

template <class Visitor, cmt::output::DescribedAs<StackCounts> S>
void describe(Visitor& field, S& stacks) {
  field("stack_modules", stacks.modules, "programs and libraries in which frames are");
  field("stack_frames", stacks.frames, "places in the code that stacks go through");
  field("named_frames", stacks.named_frames, "frames whose functions the trace names");
  field("stack_nodes", stacks.nodes, "nodes of the tree of call stacks");
}

/// The sums of the stretches of the recording.
struct RunTimes {
  std::uint64_t stretches = 0;
  cmt::RunStretch sum;
};

template <class Visitor, cmt::output::DescribedAs<RunTimes> R>
void describe(Visitor& field, R& times) {
  field("stretches", times.stretches, "stretches of the recording, of which the next figures are sums");
  field("elapsed_ns", times.sum.elapsed_ns, "from the start of the recording to the last look at the program");
  field("ran_ns", times.sum.ran_ns, "processor time of all threads");
  field("processor_wait_ns", times.sum.waited_ns, "time for which threads waited for a processor");
  field("recorder_wait_ns", times.sum.held_ns, "time for which threads waited for the recorder");
}

/// The totals of a sampled trace. They have a key of their own, so that no program takes them for those of all blocks.
struct SampleTotals {
  std::uint64_t interval = 0;
  cmt::Totals totals;
};

template <class Visitor, cmt::output::DescribedAs<SampleTotals> S>
void describe(Visitor& field, S& samples) {
  field("sampling_interval_bytes", samples.interval, "mean bytes between two samples, at the start of the trace");
  field("samples", samples.totals, "the totals of the samples alone, which are not those of the program");
  field("samples_lost", samples.totals.samples_lost, "samples for which the recorder had no room");
}

/// An entry of the trace's header.
struct MetadataEntry {
  std::string key, value;
};

template <class Visitor, cmt::output::DescribedAs<MetadataEntry> M>
void describe(Visitor& field, M& entry) {
  field("key", entry.key, "the key");
  field("value", entry.value, "the value");
}

/// The touched pages of all blocks whose pages were recorded.
struct TouchCounts {
  std::uint64_t touched_min = 0;  ///< 0: nothing was recorded
  std::uint64_t blocks = 0, bytes = 0;
  std::uint64_t touched_pages = 0, touched_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t untouched_blocks = 0, untouched_bytes = 0;
  std::uint64_t unknown_bytes = 0;
};

template <class Visitor, cmt::output::DescribedAs<TouchCounts> T>
void describe(Visitor& field, T& counts) {
  field("touched_min_bytes", counts.touched_min, "the least size of blocks whose touched pages were recorded");
  field("watched_blocks", counts.blocks, "blocks of at least that size");
  field("watched_bytes", counts.bytes, "bytes asked for by them");
  field("touched_pages", counts.touched_pages, "pages of 4 KiB of these blocks that the program touched first");
  field("touched_bytes", counts.touched_bytes, "bytes of the blocks on touched pages");
  field("maybe_touched_bytes", counts.resident_bytes,
        "bytes of the blocks on pages that were, or may have been, in memory before: nobody knows whether they were "
        "touched");
  field("untouched_blocks", counts.untouched_blocks, "blocks of which no page was touched or in memory before");
  field("unknown_at_end_bytes", counts.unknown_bytes,
        "bytes of live blocks of which the trace does not say it, as a signal ended the program, or as it is a part");
  field("untouched_bytes", counts.untouched_bytes,
        "bytes asked for, but never touched, of all these blocks; maybe_touched_bytes may be untouched too");
}

/// The facts about a trace that --info shows.
struct Info {
  std::string file;
  std::uint64_t file_bytes = 0;
  cmt::Header header;
  cmt::Totals totals;
  bool totals_stated = false;                 ///< the file has totals; else they were counted
  bool cut_off = false;                       ///< the end of the file is missing
  std::optional<std::uint64_t> last_time_ns;  ///< time of the last event that has one
  std::string ended_by{};                     ///< the signal that ended the program: "SIGTERM"; empty: none
  std::optional<Layout> layout;               ///< only for a .cmt
  StackCounts stacks;
  RunTimes run_times;                  ///< no stretches: not recorded
  std::optional<TouchCounts> touches;  ///< only if touched pages were recorded

  double per_event(std::uint64_t bytes) const;
  std::vector<MetadataEntry> metadata() const;
};

/// Totals, counts of stacks, of touched pages if they were recorded, and, of a .cmt, the layout follow as further
/// fields of the same object.
template <class Visitor, cmt::output::DescribedAs<Info> I>
void describe(Visitor& field, I& info) {
  field("file", info.file, "the name of the file");
  field("format", name(info.header.format), "text, cmt or legacy_cmt");
  field("file_bytes", info.file_bytes, "size of the file, decompressed where it is compressed");
  field("bytes_per_event", info.per_event(info.file_bytes), "bytes of the file per event");
  field("totals_stated", info.totals_stated, "the file has totals; else they were counted");
  field("cut_off", info.cut_off, "the end of the file is missing");
  field("truncated", info.totals.truncated, "the recording broke off");
  field("has_addresses", info.header.has_addresses, "addresses were recorded");
  field("has_times", info.header.has_times, "times were recorded");
  field("has_usable_sizes", info.header.has_usable, "usable sizes were recorded");
  field("has_stacks", info.header.has_stacks, "call stacks were recorded");
  field("last_time_ns", info.last_time_ns, "time of the last event that has one");
  field("ended_by", info.ended_by, "the signal that ended the program, such as SIGTERM; empty: none, or not known");
  field("metadata", info.metadata(), "the header's entries");
}

/// Reads only the headers of the blocks, index, totals and the times of the last block, if the trace is a whole .cmt
/// without touched pages. Reads any other trace to its end, with `jobs` threads. Throws FormatError and
/// std::system_error.
Info info_of(const TraceFile& file, unsigned jobs);

std::string to_text(const Info& info);

/// Schema cmt.info/1.
std::string to_json(const Info& info);

}  // namespace cmt::trace2cmt
