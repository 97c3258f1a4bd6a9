#include "cmtwatch/report/wss_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

/// Mappings that have a line of their own.
constexpr std::size_t mappings_shown = 20;

std::string length(std::int64_t ns) { return output::time_text(static_cast<double>(ns)); }

/// "1 page", "2,048 pages".
std::string counted(std::uint64_t count, const char* noun) {
  return output::with_commas(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Lines for people.
class WssText : public WssReport {
 public:
  WssText(const WssOptions& options, const WssMethod& method, Destination& destination)
      : options_(options), method_(method), destination_(destination) {}

  void sample(const WorkingSet& set) override {
    lengths_ns_.push_back(set.length_ns());
    const std::uint64_t bytes = set.touched.touched_bytes();
    sum_bytes_ += bytes;
    least_bytes_ = std::min(least_bytes_, bytes);
    most_bytes_ = std::max(most_bytes_, bytes);
    huge_bytes_ = std::max(huge_bytes_, set.touched.huge_page_bytes());
    too_long_ = std::max(too_long_, set.touched.too_long);
    untracked_bytes_ = std::max(untracked_bytes_, set.touched.untracked_bytes());
    destination_.write(output::padded(output::seconds_text(set.begin_ns), 12) + " +" +
                       output::padded(length(set.length_ns()), 8) + output::padded(amount(bytes), 14) + " of" +
                       output::padded(amount(set.touched.resident_bytes()), 12) + "  " + counted(set.pages(), "page") +
                       "\n" + (options_.verbose ? mappings(set) : ""));
  }

  void end(const WorkingSetRun& run, const ReuseDistance& reuse) override {
    destination_.write(range_line() + method_line() + reuse_line(reuse) + grain_lines() + cost_line(run));
  }

 private:
  std::string amount(std::uint64_t bytes) const {
    return options_.bytes ? std::to_string(bytes) : output::bytes_text(bytes);
  }

  std::string mappings(const WorkingSet& set) const {
    std::vector<const TouchedMapping*> touched;
    for (const TouchedMapping& mapping : set.touched.mappings) {
      if (mapping.touched_bytes != 0) touched.push_back(&mapping);
    }
    std::stable_sort(touched.begin(), touched.end(), [](const TouchedMapping* a, const TouchedMapping* b) {
      return a->touched_bytes > b->touched_bytes;
    });
    std::string text;
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < touched.size(); ++i) {
      if (i >= mappings_shown)
        others += touched[i]->touched_bytes;
      else
        text += line(*touched[i]);
    }
    if (others != 0)
      text +=
          output::padded(amount(others), 37) + "  in " + std::to_string(touched.size() - mappings_shown) + " others\n";
    return text;
  }

  std::string line(const TouchedMapping& touched) const {
    const process::Mapping& mapping = touched.mapping;
    return output::padded(amount(touched.touched_bytes), 37) + " of" +
           output::padded(amount(mapping.resident_bytes), 12) + "  " + mapping.permissions + " " +
           (mapping.name.empty() ? "anonymous" : mapping.name) + "\n";
  }

  std::string range_line() const {
    const std::uint64_t count = lengths_ns_.size();
    if (count == 1) return "";
    const auto [shortest, longest] = std::minmax_element(lengths_ns_.begin(), lengths_ns_.end());
    return "working set " + amount(least_bytes_) + " to " + amount(most_bytes_) + ", " + amount(sum_bytes_ / count) +
           " in the mean of " + output::with_commas(count) + " intervals of " + length(*shortest) + " to " +
           length(*longest) + "\n";
  }

  std::string method_line() const {
    if (method_.method == TouchMethod::idle) return "page by page, by the kernel's bitmap of idle pages\n";
    return "mapping by mapping, by clear_refs" + (method_.obstacle.empty() ? "" : ": " + method_.obstacle) +
           "; pages, and how far apart their uses are, cannot be told\n";
  }

  /// Within one interval no page is used again.
  std::string reuse_line(const ReuseDistance& reuse) const {
    if (reuse.uses() == 0 || lengths_ns_.size() == 1) return "";
    return "reuse distance: half of all uses of pages " + within(reuse, 0.5) + ", nine in ten " + within(reuse, 0.9) +
           "; " + counted(reuse.first_uses(), "first use") + " of " + output::with_commas(reuse.uses()) + "\n";
  }

  std::string within(const ReuseDistance& reuse, double share) const {
    const auto bound = [&](const ReuseDistance::Histogram& histogram) {
      const auto pages = distance_of_share(histogram, reuse.uses(), share);
      return pages ? std::optional(amount(*pages * process::page_bytes())) : std::nullopt;
    };
    const auto least = bound(reuse.lower()), most = bound(reuse.upper());
    return least && most ? "within " + *least + " to " + *most : "are not: too many are first ones";
  }

  std::string grain_lines() const {
    std::string text;
    if (huge_bytes_ != 0)
      text +=
          "up to " + amount(huge_bytes_) + " are in huge pages, which count as touched as a whole: it may be less\n";
    if (untracked_bytes_ != 0)
      text += "up to " + amount(untracked_bytes_) + " resident are not tracked by the kernel, and not counted\n";
    if (too_long_ != 0) text += counted(too_long_, "mapping") + " of more than 64 GiB of addresses not looked at\n";
    return text;
  }

  std::string cost_line(const WorkingSetRun& run) const {
    std::string text;
    if (run.gone) text += "the process has ended; ";
    if (run.missed != 0) text += counted(run.missed, "moment") + " missed; ";
    if (run.skipped != 0) text += counted(run.skipped, "moment") + " left out for their price; ";
    text += "measuring took " + output::fixed(run.cpu_share() * 100, 1) + " % of a processor";
    if (options_.pause) text += "; " + run.pauses.text();
    return text + "\n";
  }

  const WssOptions& options_;
  const WssMethod& method_;
  Destination& destination_;
  std::vector<std::int64_t> lengths_ns_;
  std::uint64_t sum_bytes_ = 0;
  std::uint64_t least_bytes_ = UINT64_MAX;
  std::uint64_t most_bytes_ = 0;
  std::uint64_t huge_bytes_ = 0;
  std::uint64_t untracked_bytes_ = 0;
  std::size_t too_long_ = 0;
};

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

/// An interval as a row of CSV.
struct SetCsvRow {
  const WorkingSet& set;
  bool pauses;
};

template <class Visitor, DescribedAs<SetCsvRow> R>
void describe(Visitor& field, R& row) {
  const auto& [set, pauses] = row;
  field("begin_ns", set.begin_ns, "");
  field("end_ns", set.end_ns, "");
  field("working_set_bytes", set.touched.touched_bytes(), "");
  field("resident_bytes", set.touched.resident_bytes(), "");
  field("huge_page_bytes", set.touched.huge_page_bytes(), "");
  field("not_tracked_bytes", set.touched.untracked_bytes(), "");
  if (pauses) field("paused_ns", set.paused_ns, "");
}

/// One mapping in an interval as a row of CSV.
struct MappingCsvRow {
  const WorkingSet& set;
  const TouchedMapping& mapping;
};

template <class Visitor, DescribedAs<MappingCsvRow> R>
void describe(Visitor& field, R& row) {
  field("begin_ns", row.set.begin_ns, "");
  field("end_ns", row.set.end_ns, "");
  describe(field, row.mapping);
}

/// A row for each interval, or with -v a row for each mapping.
class WssCsv : public WssReport {
 public:
  WssCsv(const WssOptions& options, Destination& destination) : options_(options), destination_(destination) {
    const WorkingSet set;
    const TouchedMapping mapping;
    destination_.write(options.verbose ? output::csv_titles(MappingCsvRow{set, mapping})
                                       : output::csv_titles(SetCsvRow{set, options.pause}));
  }

  void sample(const WorkingSet& set) override {
    if (!options_.verbose) return destination_.write(output::csv_row(SetCsvRow{set, options_.pause}));
    std::string rows;
    for (const TouchedMapping& mapping : set.touched.mappings) rows += output::csv_row(MappingCsvRow{set, mapping});
    destination_.write(rows);
  }

  void end(const WorkingSetRun&, const ReuseDistance&) override {}

 private:
  const WssOptions& options_;
  Destination& destination_;
};

/// Written at the end: intervals are kept until then.
class WssJson : public WssReport {
 public:
  WssJson(const WssOptions& options, const WssMethod& method, Destination& destination)
      : options_(options), method_(method), destination_(destination) {}

  void sample(const WorkingSet& set) override { sets_.push_back(set); }
  void end(const WorkingSetRun& run, const ReuseDistance& reuse) override {
    destination_.write(wss_json(options_, method_, sets_, run, reuse));
  }

 private:
  const WssOptions& options_;
  const WssMethod& method_;
  Destination& destination_;
  std::vector<WorkingSet> sets_;
};

}  // namespace

std::unique_ptr<WssReport> make_wss_report(const WssOptions& options, const WssMethod& method,
                                           Destination& destination) {
  switch (options.form) {
    case WssOptions::Form::json:
      return std::make_unique<WssJson>(options, method, destination);
    case WssOptions::Form::csv:
      return std::make_unique<WssCsv>(options, destination);
    case WssOptions::Form::text:
      break;
  }
  return std::make_unique<WssText>(options, method, destination);
}

std::string wss_json(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                     const WorkingSetRun& run, const ReuseDistance& reuse) {
  const bool by_page = method.method == TouchMethod::idle;
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.wss/1");
  field("pid", options.target.pid, "the process");
  field("method", std::string_view(by_page ? "idle" : "referenced"), "how touched memory was found");
  field("not_page_by_page_because", method.obstacle.empty() ? std::nullopt : std::optional(method.obstacle),
        "the reason why it is not idle; null: it is, or was not asked for");
  field("filter", options.target.filter, "the mappings that are measured");
  field("page_bytes", process::page_bytes(), "of this machine");
  field("interval_ns", options.pace.interval_ns, "that was asked for");
  field("elapsed_ns", run.elapsed_ns, "from the first marking to the end");
  field("ended", run.gone, "whether the process has ended");
  describe(field, static_cast<const SamplingCost&>(run));
  if (options.pause) describe(field, run.pauses);
  by_page ? field("reuse_distance", reuse, "null where pages cannot be told apart")
          : json.field("reuse_distance", std::nullopt);
  json.begin_array("samples");
  for (const WorkingSet& set : sets) field.element(ShownSet{set, options.pause});
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
