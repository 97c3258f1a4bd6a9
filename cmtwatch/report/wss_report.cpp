// Writes working sets as text, CSV or JSON while they are measured, and their summary at the end.
#include "cmtwatch/report/wss_report.h"

#include <algorithm>
#include <optional>

#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

/// Mappings that have a line of their own.
constexpr std::size_t mappings_shown = 20;

std::string length(std::int64_t ns) { return output::time_text(static_cast<double>(ns)); }

using output::DescribedAs;

/// An interval with the figures that the options ask for.
struct ShownSet {
  WorkingSet set{};
  bool pauses = true;
};

template <class Visitor, DescribedAs<ShownSet> S>
void describe(Visitor& field, S& shown) {
  const WorkingSet& set = shown.set;
  const Touched& touched = set.touched;
  field("begin_ns", set.begin_ns, "all pages were marked, since the first marking began");
  field("end_ns", set.end_ns, "reading began");
  field("interval_ns", set.length_ns(), "end_ns less begin_ns");
  field("marking_ns", set.marking_ns, "the time that marking took, before begin_ns");
  field("reading_ns", set.reading_ns, "the time that reading took, after end_ns");
  if (shown.pauses) field("paused_ns", set.paused_ns, "for so long the process was stopped at the end");
  field("working_set_bytes", touched.touched_bytes(), "touched in the interval");
  field("working_set_pages", set.pages(), "the same in pages");
  field("resident_bytes", touched.resident_bytes(), "in memory");
  field("huge_page_bytes", touched.huge_page_bytes(), "in huge pages, which are touched as a whole or not at all");
  field("not_tracked_bytes", touched.untracked_bytes(), "resident, but not tracked by the kernel");
  field("mappings_too_long_to_look_at", touched.too_long, "of more than 64 GiB of addresses");
  field("mappings", touched.mappings, "those with resident pages");
}

/// An interval as a row of CSV, or one mapping in it.
struct SetCsvRow {
  const WorkingSet& set;
  const TouchedMapping* mapping;  ///< null: the interval
  bool pauses;
};

template <class Visitor, DescribedAs<SetCsvRow> R>
void describe(Visitor& field, R& row) {
  const auto& [set, mapping, pauses] = row;
  field("begin_ns", set.begin_ns, "");
  field("end_ns", set.end_ns, "");
  if (mapping) return describe(field, *mapping);
  field("working_set_bytes", set.touched.touched_bytes(), "");
  field("resident_bytes", set.touched.resident_bytes(), "");
  field("huge_page_bytes", set.touched.huge_page_bytes(), "");
  field("not_tracked_bytes", set.touched.untracked_bytes(), "");
  if (pauses) field("paused_ns", set.paused_ns, "");
}

/// A row for the interval, or with -v a row for each mapping.
std::string csv_rows(const WorkingSet& set, const WssOptions& options) {
  if (!options.verbose) return output::csv_row(SetCsvRow{set, nullptr, options.pause});
  std::string rows;
  for (const TouchedMapping& mapping : set.touched.mappings)
    rows += output::csv_row(SetCsvRow{set, &mapping, options.pause});
  return rows;
}

std::string csv_title_row(const WssOptions& options) {
  const TouchedMapping mapping;
  return output::csv_titles(SetCsvRow{WorkingSet(), options.verbose ? &mapping : nullptr, options.pause});
}

std::string mappings_text(const WorkingSet& set, const WssOptions& options) {
  std::vector<const TouchedMapping*> touched;
  for (const TouchedMapping& mapping : set.touched.mappings) {
    if (mapping.touched_bytes != 0) touched.push_back(&mapping);
  }
  std::stable_sort(touched.begin(), touched.end(), [](const TouchedMapping* a, const TouchedMapping* b) {
    return a->touched_bytes > b->touched_bytes;
  });
  const auto mapping_line = [&options](const TouchedMapping& mapping) {
    return output::padded(amount(mapping.touched_bytes, options.bytes), 37) + " of" +
           output::padded(amount(mapping.mapping.resident_bytes, options.bytes), 12) + "  " +
           mapping.mapping.permissions + " " + (mapping.mapping.name.empty() ? "anonymous" : mapping.mapping.name) +
           "\n";
  };
  std::string text;
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < touched.size(); ++i) {
    if (i >= mappings_shown)
      others += touched[i]->touched_bytes;
    else
      text += mapping_line(*touched[i]);
  }
  if (others != 0)
    text += output::padded(amount(others, options.bytes), 37) + "  in " +
            output::counted(touched.size() - mappings_shown, "other") + "\n";
  return text;
}

std::string text_of(const WorkingSet& set, const WssOptions& options) {
  return output::padded(output::seconds_text(set.begin_ns), 12) + " +" + output::padded(length(set.length_ns()), 8) +
         output::padded(amount(set.touched.touched_bytes(), options.bytes), 14) + " of" +
         output::padded(amount(set.touched.resident_bytes(), options.bytes), 12) + "  " +
         output::counted(set.pages(), "page") + "\n" + (options.verbose ? mappings_text(set, options) : "");
}

std::string method_line(const WssMethod& method) {
  if (method.method == TouchMethod::idle) return "page by page, by the kernel's bitmap of idle pages\n";
  return "mapping by mapping, by clear_refs" + (method.obstacle.empty() ? "" : ": " + method.obstacle) +
         "; pages, and how far apart their uses are, cannot be told\n";
}

std::string within(double share, const ReuseDistance& reuse, const WssOptions& options) {
  const auto bound = [&](const ReuseDistance::Histogram& histogram) {
    const auto pages = distance_of_share(histogram, reuse.uses(), share);
    return pages ? std::optional(amount(*pages * process::page_bytes(), options.bytes)) : std::nullopt;
  };
  const auto least = bound(reuse.lower()), most = bound(reuse.upper());
  return least && most ? "within " + *least + " to " + *most : "are not: too many are first ones";
}

std::string cost_line(const WorkingSetRun& run, const WssOptions& options) {
  std::string text;
  if (run.gone) text += "the process has ended; ";
  if (run.missed != 0) text += output::counted(run.missed, "moment") + " missed; ";
  if (run.skipped != 0) text += output::counted(run.skipped, "moment") + " skipped for their cost; ";
  text += "measuring took " + output::fixed(run.cpu_share() * 100, 1) + " % of a processor";
  if (options.pause) text += "; " + run.pauses.text();
  return text + "\n";
}

}  // namespace

WssReport::WssReport(const WssOptions& options, Destination& destination)
    : options_(options), destination_(destination) {
  if (!options.plot.empty()) picture_.emplace(options.plot);
}

void WssReport::begin(const WssMethod& method) {
  method_ = method;
  if (options_.form == WssOptions::Form::csv) destination_.write(csv_title_row(options_));
}

void WssReport::sample(const WorkingSet& set) {
  const Touched& touched = set.touched;
  const std::uint64_t bytes = touched.touched_bytes();
  ++range_.intervals;
  range_.shortest_ns = std::min(range_.shortest_ns, set.length_ns());
  range_.longest_ns = std::max(range_.longest_ns, set.length_ns());
  range_.sum_bytes += bytes;
  range_.least_bytes = std::min(range_.least_bytes, bytes);
  range_.most_bytes = std::max(range_.most_bytes, bytes);
  range_.huge_bytes = std::max(range_.huge_bytes, touched.huge_page_bytes());
  range_.untracked_bytes = std::max(range_.untracked_bytes, touched.untracked_bytes());
  range_.too_long = std::max(range_.too_long, touched.too_long);
  if (method_.method == TouchMethod::idle) reuse_.add(touched.pages);
  if (picture_ || options_.form == WssOptions::Form::json) sets_.push_back(set);
  if (options_.form == WssOptions::Form::text) destination_.write(text_of(set, options_));
  if (options_.form == WssOptions::Form::csv) destination_.write(csv_rows(set, options_));
}

void WssReport::end(const WorkingSetRun& run) {
  if (options_.form == WssOptions::Form::text)
    destination_.write(range_line() + method_line(method_) + reuse_line() + grain_lines() + cost_line(run, options_));
  if (options_.form == WssOptions::Form::json) destination_.write(json(run));
  if (picture_) write_picture(*picture_, wss_picture(options_, method_, sets_, reuse_), json(run), "cmtwatch wss");
}

std::string WssReport::range_line() const {
  if (range_.intervals == 1) return "";
  return "working set " + amount(range_.least_bytes, options_.bytes) + " to " +
         amount(range_.most_bytes, options_.bytes) + ", " +
         amount(range_.sum_bytes / range_.intervals, options_.bytes) + " in the mean of " +
         output::with_commas(range_.intervals) + " intervals of " + length(range_.shortest_ns) + " to " +
         length(range_.longest_ns) + "\n";
}

/// Within one interval no page is used again.
std::string WssReport::reuse_line() const {
  if (reuse_.uses() == 0 || range_.intervals == 1) return "";
  return "reuse distance: half of all uses of pages " + within(0.5, reuse_, options_) + ", nine in ten " +
         within(0.9, reuse_, options_) + "; " + output::counted(reuse_.first_uses(), "first use") + " of " +
         output::with_commas(reuse_.uses()) + "\n";
}

std::string WssReport::grain_lines() const {
  std::string text;
  if (range_.huge_bytes != 0)
    text += "up to " + amount(range_.huge_bytes, options_.bytes) +
            " are in huge pages, which count as touched as a whole: it may be less\n";
  if (range_.untracked_bytes != 0)
    text += "up to " + amount(range_.untracked_bytes, options_.bytes) +
            " resident are not tracked by the kernel, and not counted\n";
  if (range_.too_long != 0)
    text += output::counted(range_.too_long, "mapping") + " of more than 64 GiB of addresses not looked at\n";
  return text;
}

/// Schema cmt.wss/1.
std::string WssReport::json(const WorkingSetRun& run) const {
  const bool by_page = method_.method == TouchMethod::idle;
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.wss/1");
  field("pid", options_.target.pid, "the process");
  field("method", std::string_view(by_page ? "idle" : "referenced"), "how touched memory was found");
  field("not_page_by_page_because", method_.obstacle.empty() ? std::nullopt : std::optional(method_.obstacle),
        "the reason why it is not idle; null: it is, or was not asked for");
  field("filter", options_.target.filter, "the mappings that are measured");
  field("page_bytes", process::page_bytes(), "of this machine");
  field("interval_ns", options_.pace.interval_ns, "that was asked for");
  field("elapsed_ns", run.elapsed_ns, "from the first marking to the end");
  field("ended", run.gone, "whether the process has ended");
  describe(field, static_cast<const SamplingCost&>(run));
  if (options_.pause) describe(field, run.pauses);
  by_page ? field("reuse_distance", reuse_, "null where pages cannot be told apart")
          : json.field("reuse_distance", std::nullopt);
  json.begin_array("samples");
  for (const WorkingSet& set : sets_) field.element(ShownSet{set, options_.pause});
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
