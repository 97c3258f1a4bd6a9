#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/differences/difference.h"
#include "analysis/differences/merged_stacks.h"
#include "analysis/fates/use.h"
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
};

/// One of two traces that are compared: what each stack, or other set, has allocated in it. It does not move: the trace
/// borrows its options, and the stacks the texts of the trace.
class ComparedTrace {
 public:
  /// Opens it. Borrows `options`.
  ComparedTrace(const CompareOptions& options, const std::string& path);
  ComparedTrace(const ComparedTrace&) = delete;
  ComparedTrace& operator=(const ComparedTrace&) = delete;

  const Header& header() const { return trace_.header(); }

  /// Reads it, and counts by each of these kinds of sets; at most one is of stacks. Throws FormatError where a slice,
  /// a figure or stacks are asked for that it does not have.
  void count(const std::vector<By>& kinds);

  /// Names the stacks, and keeps those that are asked for. Not for two threads at once: both may read the same files.
  void name_stacks();

  const Uses& uses(By kind) const;
  /// Of the kind of sets that is of stacks.
  DiffSide side() const { return {stacks_, uses_of_stacks()}; }
  DiffTrace facts();
  void say_defects() { trace_.complaints().say_count(); }

 private:
  struct Counted {
    By kind;
    Uses uses;
  };
  const Uses& uses_of_stacks() const;

  const CompareOptions& asked_;
  const trace::Options options_;
  trace::Trace trace_;
  std::vector<Counted> counted_;
  StackTable stacks_;
  std::uint64_t stack_count_ = 0;
};

/// Counts in both at the same time, by two threads, and names the stacks.
void count_both(ComparedTrace& before, ComparedTrace& after, const std::vector<By>& kinds);

}  // namespace cmt::analysis
