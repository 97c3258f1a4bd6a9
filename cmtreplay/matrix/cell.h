/// A cell of the matrix: what one allocator did on one trace, as a file that a board can be made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/report/warnings.h"
#include "cmtreplay/run/machine.h"
#include "cmtreplay/run/runs.h"
#include "toolkit/output/fields.h"

/// A cell of the matrix of traces and allocators has the figures of one allocator on one trace. It also has those of
/// the reference (libc, or the old build of a gate) from the same rounds. So cells can be compared by their ratios to
/// the reference, wherever they were measured.
namespace cmt::replay {

inline constexpr std::string_view cell_schema = "cmt.cell/1";

/// The trace of a cell.
struct CellTrace {
  std::string name = {};
  std::string sha256 = {};
  std::uint64_t events = 0;
  std::uint64_t calls = 0;
  std::uint64_t threads = 0;
  std::uint64_t peak_live_bytes = 0;
  bool truncated = false;
};

template <class Visitor, output::DescribedAs<CellTrace> T>
void describe(Visitor& field, T& trace) {
  field("name", trace.name, "of its file, without the ending");
  field("sha256", trace.sha256, "of the file");
  field("events", trace.events, "");
  field("calls", trace.calls, "events that are replayed as calls");
  field("threads", trace.threads, "");
  field("peak_live_bytes", trace.peak_live_bytes, "the most bytes that were live at once");
  field("truncated", trace.truncated, "whether the trace breaks off before its end");
}

/// The allocator of a cell.
struct CellAllocator {
  std::string name = {};
  std::string library = {};
  std::string sha256 = {};
  std::string prefix = {};
  std::vector<std::string> settings = {};
  std::optional<std::string> asked = {};  ///< the path, if --alloc gave one
};

template <class Visitor, output::DescribedAs<CellAllocator> A>
void describe(Visitor& field, A& allocator) {
  field("name", allocator.name, "as --alloc gave it, of a path its last part, with the settings of its environment");
  field("library", allocator.library, "the name of its malloc's file");
  field("sha256", allocator.sha256, "of that file: the build");
  field("prefix", allocator.prefix, "of the names of its calls");
  field("settings", allocator.settings, "of its environment");
  field("asked", output::omit_if_empty(allocator.asked), "the path, as --alloc gave it; no part of the cell's name");
}

/// How a trace is replayed. All cells of a board agree in it.
struct CellMode {
  std::string order = {};
  std::string touch = {};
  std::optional<std::string> give_back = {};
  std::string clock = {};
  double pace = 0;
  bool one_thread = false;
  std::optional<std::string> cpus = {};
  std::optional<std::string> huge_pages = {};

  bool operator==(const CellMode&) const = default;
};

template <class Visitor, output::DescribedAs<CellMode> M>
void describe(Visitor& field, M& mode) {
  field("order", mode.order, "free or strict");
  field("touch", mode.touch, "the bytes of each block that are written: page, none, first or all");
  field("give_back", output::omit_if_empty(mode.give_back),
        "counterpart, or absent: preloaded (--give-back; in cells of 0.1.0 counterpart)");
  field("clock", mode.clock,
        "that allocators read where times were recorded: recorded, memory (in memory runs) or none");
  field("pace", mode.pace, "recorded time over the replay's; 0: as fast as possible");
  field("one_thread", mode.one_thread, "whether all calls are made by one thread");
  field("cpus", output::omit_if_empty(mode.cpus), "that the runs were bound to (--pin); absent: to none");
  field("huge_pages", output::omit_if_empty(mode.huge_pages), "off (--huge-pages), or absent: as the machine is");
}

/// How often a trace is run, and the other options that may change figures. All cells of a board agree in it, too.
struct CellPlan {
  std::uint64_t runs = 0, budget_ns = 0, memory_runs = 0, latency_runs = 0;
  std::uint64_t seed = 0;
  std::uint64_t timeout_s = 0;
  std::string operations = {};

  bool operator==(const CellPlan&) const = default;
};

template <class Visitor, output::DescribedAs<CellPlan> P>
void describe(Visitor& field, P& plan) {
  field("runs", plan.runs, "timed runs; 0: until the median is known to 1 %, or budget_ns is spent");
  field("budget_ns", plan.budget_ns, "0 where runs has their number");
  field("memory_runs", plan.memory_runs, "");
  field("latency_runs", plan.latency_runs, "at most");
  field("seed", plan.seed, "of the order of the allocators in a round");
  field("timeout_s", plan.timeout_s, "in which no call returns, after which an allocator counts as hung");
  field("operations", plan.operations, "prepared or stream, as asked for; auto: by the memory that is free");
}

/// The timed runs of one allocator, a number for each round.
struct CellRuns {
  std::vector<std::uint64_t> wall_ns = {};
  std::vector<std::uint64_t> cpu_ns = {};
  std::vector<std::uint64_t> kernel_ns = {};
  std::vector<std::uint64_t> minor_faults = {};
  std::vector<MemoryFigures> memory = {};
};

template <class Visitor, output::DescribedAs<CellRuns> R>
void describe(Visitor& field, R& runs) {
  field("wall_ns", runs.wall_ns, "of each timed run, a round after the other");
  field("cpu_ns", runs.cpu_ns, "of all threads");
  field("kernel_ns", runs.kernel_ns, "of cpu_ns");
  field("minor_faults", runs.minor_faults, "");
  field("memory", runs.memory, "of each memory run");
}

/// When the marks of a series are, in the trace and in the replay.
struct CellTimes {
  std::vector<std::uint64_t> time_ns = {};
  std::vector<std::uint64_t> stays_ns = {};
  std::vector<std::uint64_t> clock_ns = {};
};

template <class Visitor, output::DescribedAs<CellTimes> T>
void describe(Visitor& field, T& times) {
  field("time_ns", times.time_ns, "recorded, of the event before each mark");
  field("stays_ns", times.stays_ns, "from each time mark to the next event; 0 at other marks and at the end");
  field("clock_ns", times.clock_ns, "of the replay since its first operation, without the stops at marks");
}

/// Memory along the trace, in the run with the median peak.
struct CellSeries {
  std::vector<std::uint64_t> event = {};
  std::vector<std::uint64_t> live_bytes = {};
  std::vector<std::uint64_t> resident_bytes = {};
  std::optional<CellTimes> times = {};
};

template <class Visitor, output::DescribedAs<CellSeries> S>
void describe(Visitor& field, S& series) {
  field("event", series.event, "the last event before each mark, counted from 1");
  field("live_bytes", series.live_bytes, "of the trace");
  field("resident_bytes", series.resident_bytes, "of the allocator");
  field("times", output::omit_if_empty(series.times),
        "absent if the trace has no times, and in cells of older versions");
}

/// How long single calls of malloc took.
struct CellLatency {
  std::uint64_t samples = 0;
  double p50 = LatencySummary::none, p99 = LatencySummary::none, p999 = LatencySummary::none,
         max = LatencySummary::none;
};

template <class Visitor, output::DescribedAs<CellLatency> L>
void describe(Visitor& field, L& latency) {
  field("samples", latency.samples, "calls that were timed, one in 64");
  field("p50_ns", latency.p50, "half of the calls took no longer; null: none was timed");
  field("p99_ns", latency.p99, "99 % of them");
  field("p999_ns", latency.p999, "99.9 % of them");
  field("max_ns", latency.max, "the longest");
}

/// The result of --verify.
struct CellVerification {
  std::uint64_t faults = 0;
  std::vector<std::string> findings = {};  ///< the first faults, in words
};

template <class Visitor, output::DescribedAs<CellVerification> V>
void describe(Visitor& field, V& verification) {
  field("faults", verification.faults, "promises that the allocator broke; a crash is one");
  field("findings", verification.findings, "the first twenty of them, in words");
}

/// How a cell ended.
namespace outcomes {
inline constexpr std::string_view measured = "measured", refused = "refused", died = "died", hung = "hung",
                                  verified = "verified",  ///< it was checked and not measured
    not_replayed = "not_replayed";                        ///< because of the trace or the machine
}  // namespace outcomes

struct Cell {
  std::string schema = std::string(cell_schema);
  std::string version = {};  ///< of cmtreplay
  std::optional<std::string> build = {};
  CellTrace trace = {};
  CellAllocator allocator = {};
  CellAllocator reference = {};
  CellMode mode = {};
  std::optional<CellPlan> plan = {};
  Machine machine = {};
  std::string node = {};
  std::string session = {};
  std::string outcome = {};  ///< one of `outcomes`
  std::optional<std::string> reason = {};
  std::uint64_t refused_calls = 0;
  bool is_crowded = false;
  CellRuns runs = {};
  CellRuns reference_runs = {};
  std::optional<std::string> reference_fault = {};
  double null_wall_ns = LatencySummary::none;
  CellLatency latency = {};
  CellSeries series = {};
  std::optional<CellVerification> verification = {};
  std::optional<std::vector<Warning>> warnings = {};

  bool is_measured() const { return outcome == outcomes::measured && !runs.wall_ns.empty(); }
  /// Whether both have ratios to the same allocator. If it is libc, its builds may differ.
  bool has_same_reference(const Cell& other) const {
    return reference.name == other.reference.name &&
           (reference.name == "libc" || reference.sha256 == other.reference.sha256);
  }
  /// Cells with equal keys are in one row, or in one column, of the matrix. libc is one column, whatever its build.
  /// Nodes may have different builds of libc, and the other allocators are compared with it.
  std::string row_key() const { return trace.sha256; }
  std::string column_key() const;
};

template <class Visitor, output::DescribedAs<Cell> C>
void describe(Visitor& field, C& cell) {
  field("schema", cell.schema, "the name and version of this form");
  field("version", cell.version, "of cmtreplay");
  field("build", output::omit_if_empty(cell.build),
        "SHA-256 of cmtreplay and its worker; cells of older versions lack it");
  field("trace", cell.trace, "");
  field("allocator", cell.allocator, "");
  field("reference", cell.reference, "the allocator whose runs stood in the same rounds");
  field("mode", cell.mode, "how the trace was replayed");
  field("plan", output::omit_if_empty(cell.plan), "how often; cells of older versions lack it");
  field("machine", cell.machine, "");
  field("node", cell.node, "the machine's name");
  field("session", cell.session, "random: cells of one session ran in the same rounds");
  field("outcome", cell.outcome, "measured, refused (calls), died, hung; verified: checked only");
  field("reason", cell.reason, "of any other outcome than measured, in words");
  field("refused_calls", cell.refused_calls, "the most calls that one run refused");
  field("crowded", cell.is_crowded, "whether the trace has more threads at once than there were CPUs");
  field("runs", cell.runs, "");
  field("reference_runs", cell.reference_runs, "the reference's, in the same rounds");
  field("reference_fault", output::omit_if_empty(cell.reference_fault),
        "how the reference ended, where it crashed, hung or refused calls");
  field("null_wall_ns", cell.null_wall_ns, "the median of the null allocator: the cost of the replay itself");
  field("latency", cell.latency, "of malloc and operator new");
  field("series", cell.series, "memory along the trace");
  field("verification", cell.verification, "null: was not verified");
  field("warnings", output::omit_if_empty(cell.warnings),
        "what was not replayed as recorded, and what stood out; cells of older versions lack it");
}

/// A cell's key identifies everything that the cell depends on and that is known before it is run. Example:
/// "1a2b3c4d.jemalloc-9f8e7d6c". The first number is a hash of the trace's bytes. The other one is a hash of the
/// allocator's name, bytes and settings, the build of cmtreplay, the reference, the mode and the plan. The key does not
/// depend on the other traces and allocators of the matrix.
std::string cell_key(const Cell& cell);
/// "redis-1a2b3c4d.jemalloc-9f8e7d6c.json". The trace's name is for people: a cell is found by its key.
std::string cell_file_name(const Cell& cell);

CellAllocator describe_allocator(const Allocator& allocator);
CellMode describe_mode(const ReplayOptions& options, const TraceOptions& trace);
CellPlan describe_plan(const ReplayOptions& options, const TraceOptions& trace, bool verifies);
/// The hash of the running cmtreplay and its worker.
std::string build_of_replay(const std::string& worker);

/// Copies an allocator's results and those of the reference.
void fill_cell(Cell& cell, const AllocatorResult& result, const AllocatorResult& reference,
               const AllocatorResult& baseline, std::uint64_t events);

}  // namespace cmt::replay
