/// Reads the two traces of --diff, each with counts by one or several kinds of sets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/differences/difference.h"
#include "analysis/differences/merged_stacks.h"
#include "analysis/fates/use.h"
#include "analysis/stacks/native_frames.h"
#include "toolkit/trace/slice.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::analysis {

/// How two traces are read to be compared.
struct CompareOptions {
  trace::Options trace;  ///< all but the path
  GroupOptions<DiffUse> groups{};
  bool reads_stacks = true;
  std::optional<trace::SliceRange> slice{};
  std::vector<std::string> debug_directories{};
  command::Samples samples = command::Samples::refused;  ///< whether sampled traces are compared
};

/// One of two traces that are compared, with the allocations of each stack or other set. An object cannot be moved: the
/// trace borrows its options, and the stacks borrow the texts of the trace.
class ComparedTrace {
 public:
  /// Opens the trace. Borrows `options`.
  ComparedTrace(const CompareOptions& options, const std::string& path);
  ComparedTrace(const ComparedTrace&) = delete;
  ComparedTrace& operator=(const ComparedTrace&) = delete;

  const Header& header() const { return trace_.header(); }

  /// Reads the trace, and counts by each of these kinds of sets. At most one kind is of stacks. Throws FormatError if
  /// the trace lacks the slice, the figure or the stacks that the options ask for.
  void count(const std::vector<By>& kinds);

  /// Names the stacks, and keeps those that the options ask for. Two threads must not call it at once, even for two
  /// traces: both may read the same files.
  void name_stacks();
  /// Whether the options ask for stacks of which the trace has none.
  bool has_no_match() const { return has_no_match_; }
  const std::string& tool() const { return options_.tool; }

  const Uses& uses(By kind) const;
  /// The stacks, and the allocations of each.
  DiffSide side() const { return {shown_.stacks, uses_of_stacks(), shown_.handing_on_from}; }
  DiffTrace facts();
  void say_defects() { trace_.complaints().say_count(); }

 private:
  struct Counted {
    By kind;
    Uses uses;
  };
  const Uses& uses_of_stacks() const;
  void count_blocks(const std::vector<By>& kinds);
  void count_samples(const std::vector<By>& kinds);
  template <class Counter>
  void count_with(std::vector<Counter>& counters, const std::vector<By>& kinds);

  const CompareOptions& asked_;
  const trace::Options options_;
  trace::Trace trace_;
  std::vector<Counted> counted_;
  ShownStacks shown_;
  bool has_no_match_ = false;
  std::uint64_t stack_count_ = 0;
};

/// Counts both traces at the same time with two threads, and names the stacks.
void count_both(ComparedTrace& before, ComparedTrace& after, const std::vector<By>& kinds);

/// Reads two traces, and compares them as `options.groups` asks. The caller sets the difference's slice and clock.
/// Throws FormatError, also if only one of them is sampled.
Difference compare(const CompareOptions& options, const std::string& before_path, const std::string& after_path);

}  // namespace cmt::analysis
