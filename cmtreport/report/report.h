/// The report of one or several traces, as plain numbers: what --json prints, and what the page and the text show.
///
/// Moments divide the axis evenly; moment 0 is the start. The axis is time if it was recorded, else events. `nodes` is
/// a tree of calls in which all small calls are folded together. `deltas` contain the changes of a node's own
/// allocations between a moment and the moment before. Sums over moments and nodes answer any question about a span and
/// a part of the program:
///
///     live at moment j             the sum of live_bytes up to j
///     growth from i to j           the sum of live_bytes from i + 1 to j
///     allocated in it              the sum of allocated_bytes from i + 1 to j
///     live at its moment of most   live at k - 1, and interval_peak_bytes of k, where moments.peak_bytes is highest
///     never freed of it            the sum of leaked_bytes from i + 1 to j
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "cmtreport/model/measures.h"
#include "toolkit/output/fields.h"
#include "toolkit/trace/pools.h"

namespace cmt::report {

using FrameNumber = std::uint32_t;
using NodeNumber = std::uint32_t;

/// Counts of the events and facts that could not be recorded or read.
struct Lost {
  bool is_known = true;  ///< whether the trace states how much the recorder lost
  std::uint64_t repairs = 0;
  std::uint64_t defects = 0;
  std::uint64_t unknown_ends = 0;
  std::uint64_t unknown_stack_blocks = 0;
  std::uint64_t cut_stack_bytes = 0;
  std::uint64_t unknown_touch_bytes = 0;
  std::uint64_t marks = 0;
  std::uint64_t pauses = 0;
};

/// Whether a part of all events that is lost is no finding.
inline bool is_small_loss(std::uint64_t lost, std::uint64_t events) { return lost < events / 10'000; }

template <class Visitor, output::DescribedAs<Lost> L>
void describe(Visitor& field, L& lost) {
  field("is_known", lost.is_known, "whether the trace states what was lost: a .cmt that is whole does");
  field("repairs", lost.repairs, "lines or events that were dropped or altered on the way, events that were lost too");
  field("defects", lost.defects, "defects found in the trace now");
  field("unknown_ends", lost.unknown_ends, "frees of unknown blocks: made before the trace began, or not recorded");
  field("unknown_stack_blocks", lost.unknown_stack_blocks, "blocks made whose call stack is not known");
  field("cut_stack_bytes", lost.cut_stack_bytes,
        "bytes of blocks whose call stack is known only up to a caller: frame [cut] has them");
  field("unknown_touch_bytes", lost.unknown_touch_bytes,
        "bytes of blocks of touched_min_bytes or more of which it is not known whether they were touched: "
        "untouched_bytes has the others");
  field("marks", lost.marks, "marks beyond the first 1,000 of a process, which are left out here");
  field("pauses", lost.pauses, "pauses of the recording while blocks were live: those freed in a pause count as live");
}

/// One trace of a report.
struct Process {
  std::string name;
  std::string program;
  std::string command;
  std::optional<std::uint64_t> pid;
  std::string start;
  std::uint64_t events = 0;
  std::uint64_t allocated_blocks = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t peak_live_blocks = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
  std::uint64_t recorded_ns = unknown;
  std::uint64_t end_live_bytes = 0;
  std::uint64_t end_live_blocks = 0;
  std::uint64_t largest_resident = unknown;
  std::uint64_t largest_resident_live = unknown;
  std::uint64_t largest_resident_event = unknown;
  std::uint64_t touched_min = unknown;
  std::uint64_t stacks = 0;
  bool has_stacks = false;
  bool truncated = false;
  std::string ended_by{};
  std::string memory{};
  Lost lost{};
  std::optional<std::vector<trace::PoolCount>> pools_not_counted{};
};

template <class Visitor, output::DescribedAs<Process> P>
void describe(Visitor& field, P& process) {
  field("name", process.name, "the file's name without its folder");
  field("program", process.program, "name of the program; empty: not known, as the next two");
  field("command", process.command, "its command line");
  field("pid", process.pid, "its process id");
  field("start", process.start, "wall clock at its start");
  field("events", process.events, "events read");
  field("allocated_blocks", process.allocated_blocks, "blocks made");
  field("allocated_bytes", process.allocated_bytes, "bytes asked for by them");
  field("peak_live_bytes", process.peak_live_bytes, "the most live bytes");
  field("peak_live_blocks", process.peak_live_blocks, "live blocks at that moment");
  field("peak_event", process.peak_event, "the first event with so many live bytes, counted from 1");
  field("peak_time_ns", output::nullable(process.peak_time_ns), "its time since the recording of the process began");
  field("recorded_ns", output::nullable(process.recorded_ns),
        "how long it was recorded, also after its last event; null: not known");
  field("end_live_bytes", process.end_live_bytes, "live bytes at the end");
  field("end_live_blocks", process.end_live_blocks, "live blocks at the end");
  field("largest_resident_bytes", output::nullable(process.largest_resident),
        "the largest sample of resident memory, where there are samples");
  field("largest_resident_live_bytes", output::nullable(process.largest_resident_live), "live bytes at that sample");
  field("largest_resident_event", output::nullable(process.largest_resident_event), "its event, counted from 1");
  field("touched_min_bytes", output::nullable(process.touched_min),
        "the least size of blocks whose touched pages were recorded; null: of none");
  field("stacks", process.stacks, "different stacks that have allocated; without stacks: classes of sizes");
  field("has_stacks", process.has_stacks, "whether call stacks were recorded");
  field("truncated", process.truncated, "whether the trace breaks off");
  field("ended_by", process.ended_by, "the signal that ended the process, such as SIGTERM; empty: none, or not known");
  field("memory", process.memory,
        "the memory of its control group, the machine or the process at the end, in words; empty: not watched");
  field("lost", process.lost, "what could not be recorded or read");
  field("pools_not_counted", output::omit_if_empty(process.pools_not_counted),
        "the pools that have events, which are in none of these figures (--pool)");
}

struct Thread {
  /// Bytes that a thread asked for from one moment to the next.
  struct Activity {
    std::uint64_t moment = 0;
    std::uint64_t bytes = 0;
  };
  std::uint32_t process = 0;
  std::optional<std::uint32_t> thread;
  std::uint64_t threads = 1;
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t allocated_blocks = 0;
  std::uint64_t allocated_bytes = 0;
  std::vector<Activity> activity;
};

inline constexpr std::size_t threads_max = 200;

template <class Visitor, output::DescribedAs<Thread::Activity> A>
void describe(Visitor& field, A& activity) {
  field("moment", activity.moment, "the end of the interval");
  field("bytes", activity.bytes, "bytes asked for in it");
}

template <class Visitor, output::DescribedAs<Thread> T>
void describe(Visitor& field, T& thread) {
  field("process", thread.process, "index in processes");
  field("thread", thread.thread, "its number, from 0; null: all others of the report, added up");
  field("threads", thread.threads, "how many threads these are the figures of; 1, unless thread is null");
  field("name", thread.name, "its name; empty: none was recorded");
  field("events", thread.events, "its events");
  field("allocated_blocks", thread.allocated_blocks, "blocks made by it");
  field("allocated_bytes", thread.allocated_bytes, "bytes asked for by them");
  field("activity", output::as_tuples(thread.activity),
        "when: [moment, bytes asked for from the moment before up to this one], where it asked for some");
}

/// Figures at each moment.
struct Moments {
  std::vector<std::uint64_t> position;
  std::vector<std::uint64_t> event;
  std::optional<std::vector<std::uint64_t>> time_ns;
  std::vector<std::uint64_t> live_bytes;
  std::vector<std::uint64_t> live_blocks;
  std::vector<std::uint64_t> peak_bytes;
  std::vector<std::uint64_t> peak_event;
  std::vector<std::uint64_t> allocated_bytes;
  std::vector<std::uint64_t> allocated_blocks;
  std::optional<std::vector<std::optional<std::uint64_t>>> resident_bytes;
  std::optional<std::vector<std::optional<std::uint64_t>>> resident_live_bytes;
  std::optional<std::vector<std::optional<std::uint64_t>>> resident_position;
};

template <class Visitor, output::DescribedAs<Moments> M>
void describe(Visitor& field, M& moments) {
  field("position", moments.position, "on the axis: nanoseconds, events, or 1/256 of a process's events");
  field("event", moments.event, "the last event up to there, counted from 1; of several processes in all");
  field("time_ns", moments.time_ns, "since the recording began, of several processes the first; null: no times");
  field("live_bytes", moments.live_bytes, "live bytes");
  field("live_blocks", moments.live_blocks, "live blocks");
  field("peak_bytes", moments.peak_bytes,
        "the most live bytes from the moment before up to this one; of several processes the sum of theirs, which is "
        "no less than all had together");
  field("peak_event", moments.peak_event, "the first event with so many; of several processes 0");
  field("allocated_bytes", moments.allocated_bytes, "bytes asked for so far");
  field("allocated_blocks", moments.allocated_blocks, "blocks made so far");
  field("resident_bytes", moments.resident_bytes,
        "of the process, at the last sample up to there (null before the first); null: no samples");
  field("resident_live_bytes", moments.resident_live_bytes,
        "live bytes at that sample, which may be earlier than the moment; of several processes each at its own sample");
  field("resident_position", moments.resident_position, "where that sample is on the axis; null: several processes");
}

struct Mark {
  std::string label;
  std::uint32_t process = 0;
  double moment = 0;
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
};

template <class Visitor, output::DescribedAs<Mark> M>
void describe(Visitor& field, M& mark) {
  field("label", mark.label, "as the program gave it");
  field("process", mark.process, "index in processes");
  field("moment", mark.moment, "where it lies between moments: 1.5 is halfway from moment 1 to moment 2");
  field("event", mark.event, "of the process, counted from 1");
  field("time_ns", output::nullable(mark.time_ns), "since the recording of the process began");
}

/// Functions, by number.
struct Frames {
  std::vector<std::string> function;
  std::vector<std::string> short_name;
  std::vector<std::uint32_t> library;
  std::vector<std::string> libraries;
  std::vector<std::string> file;
  std::vector<std::uint32_t> line;
  std::vector<FrameNumber> allocation_functions;
  std::vector<FrameNumber> python_functions;
};

template <class Visitor, output::DescribedAs<Frames> F>
void describe(Visitor& field, F& frames) {
  field("function", frames.function,
        "its name, or else its library with an offset; \"[all]\" of the root, \"[other, 12 functions]\" of what was "
        "folded, \"[unknown]\" where the stack is not known");
  field("short_name", frames.short_name,
        "the name without its result, arguments and template arguments; empty: the same, or that of several functions");
  field("library", frames.library, "index in libraries");
  field("libraries", frames.libraries, "files' names without their folder; empty: none");
  field("file", frames.file, "of the source, of its call that has allocated most; empty: not known");
  field("line", frames.line, "in that file; 0: not known");
  field("allocation_functions", frames.allocation_functions,
        "the frames that only hand memory on: their allocations are charged to the nearest other frame outwards, or to "
        "the "
        "outermost");
  field("python_functions", frames.python_functions, "the lines of Python; their library is their package");
}

/// The tree of calls, by number. Parents come before their children.
struct Nodes {
  std::vector<NodeNumber> parent;
  std::vector<FrameNumber> frame;
};

template <class Visitor, output::DescribedAs<Nodes> N>
void describe(Visitor& field, N& nodes) {
  field("parent", nodes.parent, "the node that calls; of node 0, the root, itself");
  field("frame", nodes.frame, "index in frames");
}

/// The small nodes that were folded.
struct Folded {
  double share = 0;
  double function_share = 0;
  std::uint64_t nodes = 0;
};

template <class Visitor, output::DescribedAs<Folded> F>
void describe(Visitor& field, F& folded) {
  field("share", folded.share, "nodes below this share of the total of every measure are folded into their caller's");
  field("function_share", folded.function_share,
        "a function with this share or more of the total of any measure has its own node below the node that it is "
        "folded into");
  field("nodes", folded.nodes, "how many that are");
}

/// Changes of one measure, by node and moment.
struct Deltas {
  std::vector<NodeNumber> node;
  std::vector<std::uint32_t> moment;
  std::vector<std::int64_t> value;
};

template <class Visitor, output::DescribedAs<Deltas> D>
void describe(Visitor& field, D& deltas) {
  field("node", deltas.node, "rising");
  field("moment", deltas.moment, "of each node rising");
  field("value", deltas.value, "from the moment before up to this one");
}

struct AllDeltas {
  std::array<Deltas, measure_count> by_measure{};
};

template <class Visitor, output::DescribedAs<AllDeltas> A>
void describe(Visitor& field, A& deltas) {
  for (std::size_t i = 0; i < measure_count; ++i)
    field(measure_texts[i].name, deltas.by_measure[i], measure_texts[i].doc);
}

/// The memory that was live at the peak.
struct PeakNodes {
  std::uint64_t moment = 0;
  std::optional<std::uint32_t> process;
  std::uint64_t live_bytes = 0;
  std::vector<NodeNumber> node;
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint64_t> blocks;
};

template <class Visitor, output::DescribedAs<PeakNodes> P>
void describe(Visitor& field, P& peak) {
  field("moment", peak.moment, "the first moment at or after the peak");
  field("process", peak.process, "index in processes of the one that had it alone; null: all, at the moment");
  field("live_bytes", peak.live_bytes,
        "the most live bytes; of several processes the most that all had together at a moment of the axis, or one "
        "alone at its own peak: they may have had more together between two moments");
  field("node", peak.node, "nodes with own allocations that were live then");
  field("bytes", peak.bytes, "their live bytes");
  field("blocks", peak.blocks, "their live blocks");
}

/// How many blocks of which size lived how long.
struct Sizes {
  struct Cell {
    std::uint64_t size = 0;
    std::uint64_t lifetime = 0;
    std::uint64_t blocks = 0;
  };
  std::vector<std::uint64_t> size_edges;
  std::vector<std::uint64_t> lifetime_edges;
  std::vector<Cell> cells;
  std::vector<std::uint64_t> allocated_blocks;
  std::vector<std::uint64_t> allocated_bytes;
  std::vector<std::uint64_t> alive_at_end;
  std::vector<std::uint64_t> alive_at_end_bytes;
};

template <class Visitor, output::DescribedAs<Sizes::Cell> C>
void describe(Visitor& field, C& cell) {
  field("size", cell.size, "index of the class of sizes");
  field("lifetime", cell.lifetime, "index of the class of lifetimes");
  field("blocks", cell.blocks, "blocks that have ended");
}
template <class Visitor, output::DescribedAs<Sizes> S>
void describe(Visitor& field, S& sizes) {
  field("size_edges", sizes.size_edges, "the least size of each class, and the end of the last");
  field("lifetime_edges", sizes.lifetime_edges, "the least lifetime of each class, in events, and the end of the last");
  field("cells", output::as_tuples(sizes.cells), "blocks that have ended: [class of size, class of lifetime, blocks]");
  field("allocated_blocks", sizes.allocated_blocks, "blocks made, by class of sizes");
  field("allocated_bytes", sizes.allocated_bytes, "bytes asked for by them");
  field("end_live_blocks", output::renamed(sizes.alive_at_end, "alive_at_end"), "blocks still live at the end");
  field("end_live_bytes", output::renamed(sizes.alive_at_end_bytes, "alive_at_end_bytes"), "their bytes");
}

/// A number of a finding.
struct Figure {
  std::string name;
  std::uint64_t value = 0;
};

/// One remarkable fact about the trace, in words with numbers.
struct Finding {
  std::string kind;
  std::string figure;
  std::string headline;
  bool urgent = false;
  std::string text;
  std::string function;
  std::vector<Figure> figures;
  std::string part;
  std::optional<std::vector<std::uint32_t>> span;
  std::optional<NodeNumber> node;
  double weight = 0;
};

/// The figures of a finding, as an object whose keys vary.
struct Figures {
  const std::vector<Figure>& list;
};

template <class Visitor, output::DescribedAs<Finding> F>
void describe(Visitor& field, F& finding) {
  field("kind", finding.kind,
        "peak, leak, live_at_end, growth, temporary, short_lived, untouched, other_thread, reallocated, pins, "
        "heap_top, mmap_threshold, allocator, retained, not_resident, ...");
  field("figure", finding.figure, "its most important number, as \"4.2 MiB\" or \"12 %\"");
  field("headline", finding.headline,
        "the finding in a line: what is true, and the nearest function of the program's own code: of Python or "
        "JavaScript, or else of the main program");
  field("urgent", finding.urgent, "whether one must look at it: a steady leak, or what makes the report doubtful");
  field("text", finding.text, "the finding in words");
  field("function", finding.function, "that it is about; empty: none");
  std::vector<std::uint64_t> values;
  for (const Figure& figure : finding.figures) values.push_back(figure.value);
  const auto name = [&](std::size_t i) -> std::string_view { return finding.figures[i].name; };
  field("numbers", output::by_name(values, name),
        "its numbers by name; those that are 0 are left out. last_event of leak and live_at_end: an event soon after "
        "the allocation of the last of these blocks");
  field("part", finding.part, "the part of the page that shows it: memory, code, pages");
  field("span", finding.span, "two moments that it lies between; null: the whole recording");
  field("node", finding.node, "the node with most of it; null: none, or it was folded");
  field("weight", finding.weight, "what can be won, as a share: findings are sorted by it");
}

struct Report {
  std::string name;
  std::string title;
  std::string axis;
  std::uint64_t duration_ns = unknown;
  std::uint64_t short_lived_max = 0;
  Process total;
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Finding> findings;
  Moments moments;
  std::vector<Mark> marks;
  Frames frames;
  Nodes nodes;
  Folded folded;
  AllDeltas deltas;
  PeakNodes peak;
  Sizes sizes;
};

inline constexpr std::string_view schema = "cmt.report/1";

template <class Visitor, output::DescribedAs<Report> R>
void describe(Visitor& field, R& report) {
  field("schema", schema, "the name and version of this form");
  field("name", report.name, "the file's name without its folder; of several processes \"3 processes\"");
  field("title", report.title, "the command that was started; if it is not known, the program or the file's name");
  field("program", report.total.program, "name of the program, of several processes that of the one that began first");
  field("command", report.total.command, "its command line");
  field("pid", report.total.pid, "its process id; null: not known, or several processes");
  field("start", report.total.start, "wall clock at the start of the first process");
  field("duration_ns", output::nullable(report.duration_ns),
        "to the last event, where times were recorded; of several processes, until all have ended");
  field("events", report.total.events, "events read");
  field("truncated", report.total.truncated, "whether a trace breaks off");
  field("has_stacks", report.total.has_stacks, "whether call stacks were recorded; else nodes are classes of sizes");
  field("lost", report.total.lost, "what could not be recorded or read, in all");
  field("allocated_blocks", report.total.allocated_blocks, "blocks made");
  field("allocated_bytes", report.total.allocated_bytes, "bytes asked for by them");
  field("end_live_blocks", report.total.end_live_blocks,
        "blocks still live at the end, of several processes when each ended");
  field("end_live_bytes", report.total.end_live_bytes, "their bytes");
  field("short_lived_max", report.short_lived_max, "a lifetime up to so many events is short");
  field("processes", report.processes, "one for each trace");
  field("threads", report.threads, "the 200 that have allocated most bytes, and all others added up");
  field("axis", report.axis, "of the moments: time, events, or share (of the events of each process)");
  field("findings", report.findings,
        "what stands out: leaks and growth first, then the most to be won; empty: nothing does");
  field("moments", report.moments, "figures at each moment; moment 0 is the start");
  field("marks", report.marks, "the program's marks");
  field("frames", report.frames, "functions, by number");
  field("nodes", report.nodes, "the tree of calls");
  field("folded", report.folded, "what was folded, since it is small");
  field("deltas", report.deltas,
        "what each node's own allocations, without those of its callees, did between moments; those that are 0 are "
        "left out");
  field("peak", report.peak, "what was live at the peak");
  field("sizes", report.sizes, "how many blocks of which size lived how many events");
}

}  // namespace cmt::report
