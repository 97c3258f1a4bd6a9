// Counts the samples, names their stacks, and puts them together by function.

#include "cmtreport/sampled/sampled_report.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "analysis/sampling/sample_counter.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "analysis/stacks/selection.h"
#include "analysis/stacks/stack_tree.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/picture/html_page.h"
#include "toolkit/picture/svg_parts.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::report {
namespace {

constexpr std::string_view not_computed =
    "memory over time, findings, trees of calls, lifetimes, temporary blocks, touched and untouched pages, places and "
    "fragmentation";

/// Names the functions of the stacks that have a sample, and leaves out those that `options` does not choose.
analysis::ShownStacks name_samples(analysis::Uses& uses, const trace::Trace& trace, const std::string& path,
                                   const ReadSettings& settings) {
  analysis::require_stacks(trace.stacks(), trace.header(), path);
  StackTable named =
      analysis::named_stacks(trace.stacks(), analysis::StackTree(trace.stacks(), uses).frames(), trace.header(),
                             {.tool = settings.tool, .debug_directories = settings.debug_directories});
  uses = analysis::select_stacks(std::move(uses), named, settings.functions.focus, {});
  analysis::ShownStacks shown = analysis::show_stacks(std::move(named), trace.stacks().nodes(),
                                                      settings.functions.native, analysis::Key::function);
  uses = analysis::shown_uses(std::move(uses), shown);
  return shown;
}

}  // namespace

bool is_sampled(const std::string& path) {
  if (!command::can_be_read_again(path)) return false;
  return command::open_trace(path, {.addresses = false}, command::Samples::accepted).header().sampled() != 0;
}

analysis::Contributors estimate_callers(const std::string& path, const ReadSettings& settings) {
  const trace::Options options{.tool = settings.tool, .path = path, .strict = settings.strict, .jobs = settings.jobs};
  trace::Trace trace(options, false, true, command::Samples::accepted);
  const Header& header = trace.header();
  require_stacks_for(settings.functions, header, path);
  const analysis::By by = header.has_stacks ? analysis::By::function : analysis::By::size;
  analysis::SampleCounter counter(by, header.sampled(), {}, trace.complaints());
  trace.for_each([&](const Event& event) { counter.count_event(event); });
  analysis::Uses uses = counter.finish(path);
  analysis::ShownStacks shown;
  if (header.has_stacks) shown = name_samples(uses, trace, path, settings);
  analysis::Contributors report = analysis::find_contributors(shown.stacks, uses,
                                                              {.by = by,
                                                               .charges = shown.charges(settings.functions.charges),
                                                               .native = settings.functions.native,
                                                               .hidden = settings.functions.hidden});
  report.name = std::filesystem::path(path).filename().string();
  report.defects = trace.complaints().count();
  report.truncated = trace.truncated();
  report.sampling = {.first_interval = header.sampled(), .interval = counter.interval()};
  if (report.total.sampled) {
    report.sampling->samples = report.total.sampled->allocated.samples;
    report.sampling->live_samples = report.total.sampled->live.samples;
  }
  trace.complaints().say_count();
  return report;
}

std::string sampled_text(const analysis::Contributors& report) {
  return analysis::to_text(report) +
         "a sampled trace lacks most blocks, so these are not computed: " + std::string(not_computed) + "\n";
}

void write_json(output::JsonWriter& json, const analysis::Contributors& report) {
  json.begin_object();
  output::write_fields(json, report);
  json.field("not_computed", not_computed);
  json.end_object();
}

std::string sampled_page(const analysis::Contributors& report, const Maker& maker) {
  const auto escape = [](const std::string& text) { return picture::SvgText::escape(text); };
  std::string lines;
  std::istringstream text(sampled_text(report));
  for (std::string line; std::getline(text, line);) lines += escape(line) + "\n";  // it would escape the LF, too
  return picture::page_head(report.name, {}, {}) + "</head>\n<body>\n<h1>" + escape(report.name) +
         ": estimates from samples</h1>\n<pre>" + lines + "</pre>\n<p>" +
         escape("cmtreport " + maker.version + ", " + maker.time + ": " + maker.command) + "</p>\n</body>\n</html>\n";
}

}  // namespace cmt::report
