// Counts the samples, names their stacks, and puts them together by function.

#include "cmtreport/sampled/sampled_report.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/differences/compared_trace.h"
#include "analysis/groups/rows.h"
#include "analysis/sampling/sample_counter.h"
#include "analysis/stacks/contributors.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "analysis/stacks/selection.h"
#include "analysis/stacks/stack_tree.h"
#include "cmtreport/sampled/live_series.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::report {
namespace {

using analysis::By;
using analysis::estimate_text;

constexpr std::string_view not_computed =
    "findings, trees of calls, lifetimes, temporary blocks, touched and untouched pages, places and fragmentation";

/// The rows of a page's tables of callers.
constexpr std::size_t rows_max = 200;

/// Names the functions of the stacks that have a sample, and leaves out those that `options` does not choose.
analysis::ShownStacks name_samples(analysis::Uses& uses, const trace::Trace& trace, const std::string& path,
                                   const ReadSettings& settings) {
  analysis::require_stacks(trace.stacks(), trace.header(), path);
  StackTable named =
      analysis::named_stacks(trace.stacks(), analysis::StackTree(trace.stacks(), uses).frames(), trace.header(),
                             {.tool = settings.tool, .debug_directories = settings.debug_directories});
  const bool had_stacks = !uses.entries.empty();
  uses = analysis::select_stacks(std::move(uses), named, settings.functions.focus, {});
  if (had_stacks && uses.entries.empty()) command::complain(settings.tool, analysis::no_stack_matches);
  analysis::ShownStacks shown = analysis::show_stacks(std::move(named), trace.stacks().nodes(),
                                                      settings.functions.native, analysis::Key::function);
  uses = analysis::shown_uses(std::move(uses), shown);
  return shown;
}

std::string with_not_computed(std::string text) {
  return std::move(text) + "sampled traces lack most blocks, so these are not computed: " + std::string(not_computed) +
         "\n";
}

picture::Panel panel_of(const LiveSeries& series) {
  using picture::Series;
  const auto& points = series.points();
  const auto has_no_time = [](const LiveSeries::Point& point) { return point.time_ns == unknown; };
  const bool timed = std::none_of(points.begin(), points.end(), has_no_time);
  picture::Panel panel{.title = "live bytes, estimated from samples",
                       .x = timed ? picture::Axis{"time since the start", picture::Unit::ns}
                                  : picture::Axis{"events", picture::Unit::count},
                       .y = {"live bytes", picture::Unit::bytes}};
  constexpr unsigned look = 7;
  Series live{"live", {}, {}, Series::Form::line},
      low{"95 % interval: lower end", {}, {}, Series::Form::line, {}, look};
  Series high{"95 % interval: upper end", {}, {}, Series::Form::line, {}, look};
  for (const LiveSeries::Point& point : points) {
    const std::uint64_t at = timed ? point.time_ns : point.event;
    const analysis::Range range = interval95(point.live);
    live.add(at, point.live.bytes);
    low.add(at, range.low);
    high.add(at, range.high);
  }
  panel.series = {live, low, high};
  return panel;
}

picture::NumberTable table_of(const analysis::Contributors& report) {
  picture::NumberTable table{
      {std::string(name(report.by)), "live at the end", "live at the peak", "allocated", "samples"}, {}};
  const analysis::TableNames names(report.by, report.contributors);
  for (const analysis::Contributor& one : report.contributors) {
    const auto& use = one.self.sampled;
    if (!use || table.rows.size() == rows_max) continue;
    table.rows.push_back({names.text(one.name), estimate_text(use->live), estimate_text(use->peak),
                          estimate_text(use->allocated), output::with_commas(use->allocated.samples)});
  }
  return table;
}

picture::NumberTable table_of(const analysis::Difference& report) {
  picture::NumberTable table{
      {std::string(name(report.by)), "live at the end, before", "after", "allocated, before", "after"}, {}};
  const analysis::TableNames names(report.by, report.contributors);
  for (const auto& one : report.contributors) {
    const auto &before = one.self.before.sampled, &after = one.self.after.sampled;
    if (!before || !after || table.rows.size() == rows_max) continue;
    table.rows.push_back({names.text(one.name), estimate_text(before->live), estimate_text(after->live),
                          estimate_text(before->allocated), estimate_text(after->allocated)});
  }
  return table;
}

template <class Report>
SampledReport finish(const Report& report, std::string title, const LiveSeries* series) {
  SampledReport finished;
  finished.text = with_not_computed(to_text(report));
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  output::write_fields(json, report);
  if (series != nullptr) field("live_over_time", *series, "");
  json.field("not_computed", not_computed);
  json.end_object();
  finished.json = json.take();
  finished.picture = {
      .title = std::move(title), .subtitle = "estimates from samples, with 95 % intervals", .panels = {}};
  if (series != nullptr && !series->points().empty()) finished.picture.panels.push_back(panel_of(*series));
  finished.picture.tables.push_back(table_of(report));
  return finished;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

bool is_sampled(const std::string& path) {
  if (!command::can_be_read_again(path)) return false;
  return command::open_trace(path, {.addresses = false}, command::Samples::accepted).header().sampled() != 0;
}

SampledReport estimate_callers(const std::string& path, const ReadSettings& settings) {
  const trace::Options options{.tool = settings.tool, .path = path, .strict = settings.strict, .jobs = settings.jobs};
  trace::Trace trace(options, false, true, command::Samples::accepted);
  const Header& header = trace.header();
  require_stacks_for(settings.functions, header, path);
  const By by = header.has_stacks ? By::function : By::size;
  analysis::SampleCounter counter(by, header.sampled(), {}, trace.complaints());
  LiveSeries series;
  trace.for_each([&](const Event& event) {
    counter.count_event(event);
    series.add(event.time_ns, counter.live());
  });
  analysis::Uses uses = counter.finish(path);
  analysis::ShownStacks shown;
  if (header.has_stacks) shown = name_samples(uses, trace, path, settings);
  analysis::Contributors report = analysis::find_contributors(shown.stacks, uses,
                                                              {.by = by,
                                                               .charges = shown.charges(settings.functions.charges),
                                                               .native = settings.functions.native,
                                                               .hidden = settings.functions.hidden});
  report.name = file_name(path);
  report.defects = trace.complaints().count();
  report.truncated = trace.truncated();
  report.sampling = {.first_interval = header.sampled(), .interval = counter.interval()};
  if (trace.totals()) report.sampling->lost = trace.totals()->samples_lost;
  if (report.total.sampled) {
    report.sampling->samples = report.total.sampled->allocated.samples;
    report.sampling->live_samples = report.total.sampled->live.samples;
  }
  trace.complaints().say_count();
  return finish(report, report.name, &series);
}

SampledReport compare_samples(const std::string& before, const std::string& after, const ReadSettings& settings) {
  const auto has_stacks = [&](const std::string& path) {
    const Header header = command::open_trace(path, {.addresses = false}, command::Samples::accepted).header();
    require_stacks_for(settings.functions, header, path);
    return header.has_stacks;
  };
  const bool by_function = has_stacks(before) && has_stacks(after);
  analysis::CompareOptions options;
  options.trace = {.tool = settings.tool, .path = after, .strict = settings.strict, .jobs = settings.jobs};
  options.groups = {.by = by_function ? By::function : By::size,
                    .metric = analysis::Metric::live,
                    .charges = settings.functions.charges,
                    .native = settings.functions.native,
                    .focus = settings.functions.focus,
                    .hidden = settings.functions.hidden};
  options.reads_stacks = by_function;
  options.debug_directories = settings.debug_directories;
  options.samples = command::Samples::accepted;
  return finish(analysis::compare(options, before, after), file_name(before) + " to " + file_name(after), nullptr);
}

std::string sampled_page(SampledReport report, const Maker& maker) {
  report.picture.table =
      std::move(report.text) + "\ncmtreport " + maker.version + ", " + maker.time + ": " + maker.command;
  return picture::to_html(report.picture, report.json);
}

}  // namespace cmt::report
