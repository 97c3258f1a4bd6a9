/// The changes from one trace to another, as plain numbers. cmtreport --diff --json prints them; its page and its text
/// show them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/differences/difference.h"
#include "cmtreport/report/report.h"
#include "toolkit/output/fields.h"

namespace cmt::report {

/// One of the two traces.
struct DiffSideFacts {
  std::string name;
  std::string program;
  std::string command;
  std::string start;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
};

template <class Visitor, output::DescribedAs<DiffSideFacts> S>
void describe(Visitor& field, S& side) {
  field("name", side.name, "the file's name without its folder");
  field("program", side.program, "name of the program; empty: not known, as the next two");
  field("command", side.command, "its command line");
  field("start", side.start, "wall clock at its start");
  field("events", side.events, "events read");
  field("defects", side.defects, "defects found in the trace");
  field("truncated", side.truncated, "whether the trace breaks off");
}

/// The figures that are compared, by the name that cmt.report/1 and cmt.contributors/1 have for them.
struct DiffMeasure {
  std::string_view name;
  analysis::Metric metric;
  std::string_view doc;
};

inline constexpr std::array<DiffMeasure, 8> diff_measures{{
    {"allocated_bytes", analysis::Metric::bytes, "bytes asked for"},
    {"allocated_blocks", analysis::Metric::blocks, "blocks made"},
    {"peak_bytes", analysis::Metric::peak, "bytes live at the peak of each trace"},
    {"leaked_bytes", analysis::Metric::live, "bytes live at the end"},
    {"temporary_blocks", analysis::Metric::temporary, "blocks freed by the next event of their thread"},
    {"short_lived_blocks", analysis::Metric::short_lived, "blocks with a lifetime up to 256 events"},
    {"other_thread_blocks", analysis::Metric::other_thread, "blocks freed by another thread"},
    {"reallocated_blocks", analysis::Metric::reallocated, "blocks made by a realloc of another block"},
}};

/// One figure of all nodes' own allocations, in both traces.
struct ComparedFigures {
  std::vector<NodeNumber> node;
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
};

template <class Visitor, output::DescribedAs<ComparedFigures> F>
void describe(Visitor& field, F& figures) {
  field("node", figures.node, "rising; nodes that have none in both are left out");
  field("before", figures.before, "in the first trace");
  field("after", figures.after, "in the second");
}

struct AllComparedFigures {
  std::array<ComparedFigures, diff_measures.size()> by_measure{};
};

template <class Visitor, output::DescribedAs<AllComparedFigures> A>
void describe(Visitor& field, A& figures) {
  for (std::size_t i = 0; i < diff_measures.size(); ++i)
    field(diff_measures[i].name, figures.by_measure[i], diff_measures[i].doc);
}

/// One remarkable change, in words with numbers.
struct DiffFinding {
  std::string kind;
  std::string figure;
  std::string headline;
  bool urgent = false;
  std::string text;
  std::string function;
  std::string measure;
  std::int64_t before = 0;
  std::int64_t after = 0;
  double share = 0;
  std::string part;
  double weight = 0;
};

template <class Visitor, output::DescribedAs<DiffFinding> F>
void describe(Visitor& field, F& finding) {
  field("kind", finding.kind, "more, less, new or gone: of a function; or lost: what makes the others doubtful");
  field("figure", finding.figure, "its most important number, as \"+4.2 MiB\"");
  field("headline", finding.headline, "the finding in a line");
  field("urgent", finding.urgent, "whether one must look at it: it makes the others doubtful");
  field("text", finding.text, "the finding in words");
  field("function", finding.function, "that it is about; empty: none");
  field("measure", finding.measure, "the figure that has changed, as in figures; empty: none");
  field("before", finding.before, "the figure in the first trace");
  field("after", finding.after, "in the second");
  field("share", finding.share, "of all changes of that figure, those taken without their signs: from -1 to 1");
  field("part", finding.part, "the part of the page that shows it: code, sizes or traces");
  field("weight", finding.weight, "findings are sorted by it");
}

/// The most contributors that a report has of each difference.
inline constexpr std::size_t diff_contributors_max = 100;

struct DiffReport {
  std::string name;
  DiffSideFacts before;
  DiffSideFacts after;
  bool has_stacks = false;
  analysis::DiffUse total;
  std::vector<DiffFinding> findings;
  Frames frames;
  Nodes nodes;
  Folded folded;
  AllComparedFigures figures;
  std::optional<analysis::Difference> by_function;
  analysis::Difference by_size;
};

inline constexpr std::string_view diff_schema = "cmt.diff_report/1";

/// Describes the report. Its difference by function has only the first diff_contributors_max contributors.
template <class Visitor>
void describe(Visitor& field, const DiffReport& report) {
  field("schema", diff_schema, "the name and version of this form");
  field("name", report.name, "of both files");
  field("before", report.before, "the first trace");
  field("after", report.after, "the second");
  field("has_stacks", report.has_stacks,
        "whether both have call stacks; else nodes are classes of sizes, and by_function is null");
  field("total", report.total, "of all stacks");
  field("findings", report.findings, "what has changed most; empty: nothing has");
  field("frames", report.frames, "functions, by number");
  field("nodes", report.nodes, "the tree of calls of both traces, as in cmt.report/1");
  field("folded", report.folded, "what was folded, since it is small");
  field("figures", report.figures, "what each node's own allocations have in both traces");
  field("by_function", report.by_function,
        "what changed by function, as lifetimes --diff: a cmt.difference/1 of 100 contributors at most");
  field("by_size", report.by_size, "what changed by size: a cmt.difference/1");
}

}  // namespace cmt::report
