#include "cmtwatch/report/wss_report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cmtwatch/report/csv.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

/// So many mappings are shown by themselves.
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

  void end(const Outcome& outcome, const ReuseDistance& reuse) override {
    destination_.write(range_line() + method_line() + reuse_line(reuse) + grain_lines() + price_line(outcome));
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

  /// Of one interval nothing comes back.
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

  std::string price_line(const Outcome& outcome) const {
    std::string text;
    if (outcome.gone) text += "the process has ended; ";
    if (outcome.missed != 0) text += counted(outcome.missed, "moment") + " missed; ";
    if (outcome.skipped != 0) text += counted(outcome.skipped, "moment") + " left out for their price; ";
    text += "measuring took " + output::fixed(outcome.cost_share() * 100, 1) + " % of a processor";
    if (options_.pause) text += "; " + outcome.pauses.text();
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

/// A row an interval, or with -v a row a mapping and interval.
class WssCsv : public WssReport {
 public:
  WssCsv(const WssOptions& options, Destination& destination) : options_(options), destination_(destination) {
    destination_.write(std::string("begin_ns,end_ns,") + (options.verbose ? "begin,end,permissions,name," : "") +
                       "working_set_bytes,resident_bytes,huge_page_bytes,not_tracked_bytes" +
                       (options.pause && !options.verbose ? ",paused_ns\n" : "\n"));
  }

  void sample(const WorkingSet& set) override {
    const std::string times = std::to_string(set.begin_ns) + "," + std::to_string(set.end_ns) + ",";
    const Touched& touched = set.touched;
    if (!options_.verbose) {
      return destination_.write(times +
                                figures(touched.touched_bytes(), touched.resident_bytes(), touched.huge_page_bytes(),
                                        touched.untracked_bytes()) +
                                (options_.pause ? "," + std::to_string(set.paused_ns) + "\n" : "\n"));
    }
    std::string rows;
    for (const TouchedMapping& of : touched.mappings) {
      const process::Mapping& mapping = of.mapping;
      rows += times + output::hex(mapping.begin) + "," + output::hex(mapping.end) + "," + mapping.permissions + "," +
              quoted(mapping.name) + "," +
              figures(of.touched_bytes, mapping.resident_bytes, mapping.huge_page_bytes, of.untracked_bytes) + "\n";
    }
    destination_.write(rows);
  }

  void end(const Outcome&, const ReuseDistance&) override {}

 private:
  static std::string figures(std::uint64_t touched, std::uint64_t resident, std::uint64_t huge,
                             std::uint64_t untracked) {
    return std::to_string(touched) + "," + std::to_string(resident) + "," + std::to_string(huge) + "," +
           std::to_string(untracked);
  }

  const WssOptions& options_;
  Destination& destination_;
};

/// Written at the end: intervals are kept until then.
class WssJson : public WssReport {
 public:
  WssJson(const WssOptions& options, const WssMethod& method, Destination& destination)
      : options_(options), method_(method), destination_(destination) {}

  void sample(const WorkingSet& set) override { sets_.push_back(set); }
  void end(const Outcome& outcome, const ReuseDistance& reuse) override {
    destination_.write(to_json(options_, method_, sets_, outcome, reuse));
  }

 private:
  const WssOptions& options_;
  const WssMethod& method_;
  Destination& destination_;
  std::vector<WorkingSet> sets_;
};

}  // namespace

std::uint64_t WorkingSet::pages() const { return touched.touched_bytes() / process::page_bytes(); }

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

}  // namespace cmt::watch
