/// Who allocates: the allocations of a trace by the function, the line, the library, or the function with its caller.
///
/// A stack is charged to its innermost function that is no allocation function (labels.h): that is its contributor. A
/// function also has all that the functions that it calls allocate; recursive ones are counted once in each stack.
///
///     main -> parse -> operator new          charged to parse; main and parse have it with callees
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lifetimes/stacks/labels.h"
#include "lifetimes/stacks/stack_use.h"
#include "toolkit/output/fields.h"

namespace cmt::lifetimes {

/// A function of a stack.
struct StackLine {
  std::string function;
  std::string library;
  std::optional<std::string> file;
  std::optional<std::uint64_t> line;
};

template <class Visitor, output::DescribedAs<StackLine> S>
void describe(Visitor& field, S& line) {
  field("function", line.function, "its name, or else its library with an offset, or else an address");
  field("library", line.library, "the file's name without its folder");
  field("file", line.file, "of the source");
  field("line", line.line, "in that file");
}

struct Contributor {
  std::string name;
  Use self;
  Use inclusive;
  StackId largest = 0;  ///< of its own stacks, or if it has none of those through it, that with most by the metric
  std::vector<StackLine> stack;
  std::uint64_t stack_left_out = 0;
};

/// How many functions of a stack are kept, of a deep one: a report of many would else be as large as their square.
inline constexpr std::size_t inner_lines_max = 40, outer_lines_max = 10;

template <class Visitor, output::DescribedAs<Contributor> C>
void describe(Visitor& field, C& contributor) {
  field("name", contributor.name, "of the function, the line, the library, or of function and caller");
  field("self", contributor.self, "of stacks of which it is the innermost that is no allocation function");
  field("inclusive", contributor.inclusive, "of stacks that it is anywhere in");
  field("stack", contributor.stack,
        "the largest of its stacks by sorted_by, the innermost function first; of more than 50, the inner 40 and the "
        "outer 10");
  field("stack_left_out", contributor.stack_left_out, "functions between these");
}

/// What a report is about.
enum class By { function, caller, line, library };

struct ContributorOptions {
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;  ///< sorts by what functions have with those that they call
  std::string skipped{};   ///< functions that count as allocation functions, an extended regular expression
  std::size_t top = 0;     ///< how many contributors; 0: all
};

struct Contributors {
  std::string name;  ///< of the file
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t stacks = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
  Use total;
  Use of_unknown_stacks;
  std::vector<Contributor> contributors;
  std::uint64_t left_out = 0;
};

std::string_view name(By by);
std::string_view name(Metric metric);
std::optional<By> parse_by(std::string_view text);
std::optional<Metric> parse_metric(std::string_view text);

inline constexpr std::string_view contributors_schema = "cmt.contributors/1";

template <class Visitor, output::DescribedAs<Contributors> C>
void describe(Visitor& field, C& report) {
  field("schema", contributors_schema, "the name and version of this form");
  field("name", report.name, "the file's name without its folder");
  field("by", name(report.by), "function, caller, line or library");
  field("sorted_by", name(report.metric),
        "bytes (allocated), blocks (allocated), peak, live (at the end) or temporary");
  field("sorted_inclusive", report.inclusive, "whether by inclusive, or by self");
  field("events", report.events, "events read");
  field("defects", report.defects, "defects found in the trace");
  field("truncated", report.truncated, "whether the trace breaks off");
  field("stacks", report.stacks, "different stacks that have allocated");
  field("peak_event", report.peak_event, "the event with the most live bytes, counted from 1");
  field("peak_time_ns", output::nullable(report.peak_time_ns), "its time since the recording began");
  field("total", report.total, "of all stacks");
  field("unknown_stacks", report.of_unknown_stacks, "of allocations whose stack is not known");
  field("contributors", report.contributors, "the largest first");
  field("contributors_left_out", report.left_out, "how many more there are, beyond --top");
}

/// The allocations of `uses` by contributor. `stacks` has the frames' names. The report's name, defects and truncation
/// are the caller's. Memory and time: by the nodes of the stacks, however deep those are.
Contributors find_contributors(const StackTable& stacks, const StackUses& uses, const ContributorOptions& options);

std::string to_text(const Contributors& report);
std::string to_csv(const Contributors& report);

}  // namespace cmt::lifetimes
