// Looks for each kind of finding, and puts it into words. The limits and weights at the top decide what is reported,
// and in which order.

#include "cmtreport/findings/findings.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/stacks/function_names/short_name.h"
#include "cmtreport/findings/functions.h"
#include "cmtreport/findings/heap_tops.h"
#include "cmtreport/findings/trends.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::report {
namespace {

using output::bytes_text;
using output::counted;
using output::percent_text;
using output::with_commas;

/// The least share of the whole (bytes of the peak, or calls) that is worth a finding, by kind.
constexpr double late_leak = 0.3;  // of the time, from which on a table that is filled looks like a leak
constexpr double least_peak = 0.1, least_leak = 0.01, least_live = 0.05, least_growth = 0.015, least_temporary = 0.03,
                 least_reallocated = 0.05, least_other_thread = 0.1, least_untouched = 0.05, least_short_lived = 0.1;

/// The least share of blocks of unknown stacks that is urgent.
constexpr double least_unknown_stacks = 0.01;

/// The weight of a share of the whole in the order of findings. Memory at the peak may be needed, so it weighs little.
/// Leaks and growth have no end, so they weigh more, however small they are so far.
constexpr double peak_weight = 0.1, staying_weight = 0.001, live_weight = 0.08, growth_base = 0.05, growth_weight = 1,
                 leak_base = 0.1, temporary_weight = 0.5, reallocated_weight = 0.3, other_thread_weight = 0.1,
                 untouched_weight = 0.2, short_lived_weight = 0.05, burst_weight = 0.3, allocator_weight = 0.3,
                 pins_weight = 1;

/// The least parts for a finding about pinned pages.
constexpr double least_pinned = 0.1;        // of all pages: those that old blocks pin
constexpr double least_of_pinned = 0.2;     // of the pinned bytes: those of one function
constexpr double least_of_old_pages = 0.5;  // of the pages with its old blocks: those that would be free
constexpr std::uint64_t least_pinned_bytes = 128 << 10;

/// The least difference of resident and live bytes that is a finding, and the most times of one process.
constexpr std::uint64_t least_beyond_live = 8 << 20;
constexpr std::size_t retentions_max = 3;
constexpr std::string_view pool_text =
    "; the interpreter keeps these blocks for later values until it ends: they are no leak of their own";
constexpr std::string_view not_live_text =
    "the rest is the allocator's own, or other memory (code, stacks, mappings, older blocks)";

/// How many functions of a stack are near, from the allocating one outwards. Functions that rise alike and share a near
/// one have one cause.
constexpr std::size_t near_callers = 3;

/// Longer names are shortened in texts.
constexpr std::size_t name_columns = 48, through_columns = 36;

/// Less than this is no finding, whatever its share.
constexpr std::uint64_t least_bytes = 4096, least_blocks = 100;

/// From this on, a library's memory from before main is as remarkable at the peak as other memory.
constexpr std::uint64_t least_of_library = 1 << 20;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// A function whose live bytes rise.
struct Rising {
  FunctionSeries series;
  Growth growth;
  std::vector<FunctionId> path;  ///< itself and its near callers
  std::size_t functions_alike = 0;
  std::uint64_t grown_alike = 0;  ///< the bytes by which these have grown
  FunctionId common{};            ///< a function that calls these and this one
};

class Finder {
 public:
  Finder(const Recording& recording, const Report& report, const TotalsByNode& totals, const ChangesByNode& changes,
         const std::vector<NodeNumber>& node_of, const HeldPages& pages)
      : recording_(recording),
        tree_(recording.tree()),
        report_(report),
        totals_(totals),
        changes_(changes),
        node_of_(node_of),
        pages_(pages),
        peak_bytes_(report.peak.live_bytes),
        calls_(report.total.allocated_blocks),
        callers_(tree_, programs_of(recording)),
        functions_(totals_by_function(tree_, totals, changes)),
        staying_(find_staying(tree_, totals)) {
    for (const Function& function : tree_.functions())
      short_names_[analysis::short_name(function.name)].insert(function.name + '\0' + function.library);
  }

  std::vector<Finding> find() {
    for (const FunctionTotals& function : functions_) {
      find_peak(function);
      find_temporary(function);
      find_short_lived(function);
      find_reallocated(function);
      find_other_thread(function);
      find_untouched(function);
    }
    find_trends();
    find_burst();
    find_pins();
    if (auto finding = heap_top_finding(pages_, tree_, node_of_)) findings_.push_back(std::move(*finding));
    if (auto finding = threshold_finding(pages_, tree_, node_of_)) findings_.push_back(std::move(*finding));
    find_resident();
    find_lost();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    return std::move(findings_);
  }

 private:
  std::string name_of(FunctionId function) const {
    const std::string_view full = tree_.at(function).name;
    const std::string short_name = analysis::short_name(full);
    const bool is_unique = short_names_.at(short_name).size() < 2;
    const std::string name = output::shortened(text::to_line(is_unique ? short_name : std::string(full)), name_columns);
    return report_.total.has_stacks ? name : "blocks of " + name;
  }

  static std::set<std::string> programs_of(const Recording& recording) {
    std::set<std::string> programs;
    for (const TraceFigures& trace : recording.traces())
      programs.insert(trace.process.program.substr(trace.process.program.rfind('/') + 1));
    programs.erase("");
    return programs;
  }

  Finding& add(const char* kind, const char* part, double weight) {
    findings_.push_back({.kind = kind,
                         .figure = {},
                         .headline = {},
                         .text = {},
                         .function = {},
                         .figures = {},
                         .part = part,
                         .span = {},
                         .node = {},
                         .weight = weight});
    return findings_.back();
  }

  /// Adds a finding about a figure of a function: `figure(totals)`, of `other_totals` or of the recording. Finds the
  /// caller with most of the figure, which the text names.
  template <class GetFigure>
  Finding& add_of_function(const char* kind, FunctionId function, double weight, GetFigure figure,
                           const TotalsByNode* other_totals = nullptr) {
    Finding& finding = add(kind, "code", weight);
    finding.function = tree_.at(function).name;
    const LargestCaller largest =
        largest_caller(tree_, callers_, other_totals == nullptr ? totals_ : *other_totals, function, figure);
    finding.node = node_of_[index_of(largest.node)];
    caller_.clear();
    if (largest.caller != FunctionId{}) caller_ = name_of(largest.caller);
    caller_amount_ = largest.amount;
    own_code_text_ = name_of(largest.own_code != FunctionId{} ? largest.own_code : function);
    own_amount_ = largest.own_amount;
    through_.clear();
    if (largest.own_code != FunctionId{} && largest.own_code != function)
      through_ = output::shortened(text::to_line(analysis::short_name(finding.function)), through_columns);
    return finding;
  }

  /// "parse", "load_rows, through PyUnicode_New", "load_rows for 62.3 %, through PyUnicode_New": the user's own code in
  /// a function, whose figure in all is `whole`.
  std::string own_code_text(std::uint64_t whole) const {
    if (through_.empty()) return own_code_text_;
    const bool is_nearly_all = share(own_amount_, whole) >= 0.995;
    return own_code_text_ + (is_nearly_all ? "" : " for " + percent_text(own_amount_, whole)) + ", through " + through_;
  }

  /// " (called by parse)", " (62.3 % called by parse)". `of_whole` names the whole where the text before it has another
  /// figure: " (62.3 % of all 1.20 MiB called by parse)".
  std::string caller_text(std::uint64_t whole, const std::string& of_whole = "") const {
    if (caller_.empty()) return "";
    const bool is_nearly_all = share(caller_amount_, whole) >= 0.995;
    return " (" + (is_nearly_all ? "" : percent_text(caller_amount_, whole) + of_whole + " ") + "called by " + caller_ +
           ")";
  }

  /// "1.25 s", "event 1,234", "73 % of the recording".
  std::string place_text(std::size_t moment) const {
    const Moments& moments = report_.moments;
    if (moments.time_ns) return output::time_text(static_cast<double>((*moments.time_ns)[moment]));
    if (recording_.traces().size() == 1) return "event " + with_commas(moments.event[moment]);
    return percent_text(moment, recording_.last_moment()) + " of the recording";
  }

  /// "leaks" of a function, "leak" of the blocks of a size.
  std::string verb(const std::string& of_function, const std::string& of_blocks) const {
    return report_.total.has_stacks ? of_function : of_blocks;
  }

  std::string end_text() const {
    const std::string text = report_.total.truncated           ? "live where the recording breaks off"
                             : recording_.traces().size() == 1 ? "still live at the end"
                                                               : "live when each process ended";
    return text + (report_.total.lost.pauses == 0 ? "" : ", or freed in a pause of the recording");
  }

  /// The weight of memory that is never freed. If it is most of the memory that is live at the end, its share of that
  /// memory counts too.
  double weight_of_end(double usual, std::uint64_t bytes, std::uint64_t blocks) const {
    const double of_end = share(bytes, report_.total.end_live_bytes);
    const bool is_most = of_end >= 0.5 && blocks > 1 && !report_.total.truncated;
    return is_most && share(bytes, peak_bytes_) >= least_live ? std::max(usual, of_end) : usual;
  }
  /// "3 blocks", "3 blocks (64.0 KiB of these in one block)" if one of them has half of the bytes or more.
  static std::string blocks_text(const StillLive& live) {
    const bool is_in_one = live.blocks > 1 && live.largest_block >= live.bytes - live.bytes / 2;
    return counted(live.blocks, "block") +
           (is_in_one ? " (" + bytes_text(live.largest_block) + " of these in one block)" : "");
  }
  /// "; 7.00 KiB more in blocks that were allocated later".
  static std::string later_text(const StillLive& live, std::uint64_t all) {
    return all <= live.bytes ? "" : "; " + bytes_text(all - live.bytes) + " more in blocks that were allocated later";
  }
  static std::vector<Figure> figures_of(const StillLive& live, std::uint64_t event, std::uint64_t all) {
    std::vector<Figure> figures{
        {"bytes", live.bytes}, {"blocks", live.blocks}, {"last_event", event}, {"all_bytes", all}};
    if (live.largest_block != 0) figures.push_back({"largest_block_bytes", live.largest_block});
    return figures;
  }

  void add_caller(Finding& finding) const {
    if (!caller_.empty()) finding.figures.push_back({"largest_caller", caller_amount_});
  }

  void find_peak(const FunctionTotals& function) {
    const std::uint64_t bytes = function.totals.peak_bytes;
    if (share(bytes, peak_bytes_) < least_peak || bytes < least_bytes) return;
    const bool is_of_library =
        staying_[index_of(function.function)] == Stays::library && function.totals.sum[Measure::leaked_bytes] >= bytes;
    const bool is_small = is_of_library && bytes < least_of_library;
    Finding& finding = add_of_function("peak", function.function,
                                       share(bytes, peak_bytes_) * (is_small ? staying_weight : peak_weight),
                                       [](const NodeTotals& node) { return node.peak_bytes; });
    finding.figure = bytes_text(bytes);
    finding.headline = "of the peak (" + percent_text(bytes, peak_bytes_) + "), in " + own_code_text(bytes);
    finding.text = percent_text(bytes, peak_bytes_) + " of the peak (" + bytes_text(bytes) + " of " +
                   bytes_text(peak_bytes_) + ") was allocated by " + name_of(function.function) + caller_text(bytes);
    if (is_of_library) finding.text += "; a library made it before main and keeps it: it is no leak";
    finding.figures = {{"bytes", bytes}, {"blocks", function.totals.peak_blocks}, {"peak_bytes", peak_bytes_}};
    add_caller(finding);
  }

  /// Findings about a share of all calls that allocate.
  /// `what` and `headline` name the blocks: "blocks that the next event frees".
  void find_calls(const FunctionTotals& function, Measure measure, const char* kind, double least, double weight,
                  const std::string& what, const std::string& headline) {
    const std::uint64_t blocks = function.totals.sum[measure];
    if (share(blocks, calls_) < least || blocks < least_blocks) return;
    Finding& finding = add_of_function(kind, function.function, share(blocks, calls_) * weight,
                                       [measure](const NodeTotals& node) { return node.sum[measure]; });
    finding.figure = percent_text(blocks, calls_);
    finding.headline = headline + ", in " + own_code_text(blocks);
    finding.text = name_of(function.function) + ": " + percent_text(blocks, calls_) + " of all allocations (" +
                   with_commas(blocks) + " of " + with_commas(calls_) + ") are " + what + caller_text(blocks);
    finding.figures = {{"blocks", blocks}, {"allocated_blocks", calls_}};
    add_caller(finding);
  }

  void find_temporary(const FunctionTotals& function) {
    find_calls(function, Measure::temporary_blocks, "temporary", least_temporary, temporary_weight,
               "temporary: the thread's next event frees them", "of all allocations are temporary");
  }
  /// Adds a finding for a function most of whose short-lived blocks are not temporary.
  void find_short_lived(const FunctionTotals& function) {
    const Measures& sum = function.totals.sum;
    if (2 * sum[Measure::temporary_blocks] < sum[Measure::short_lived_blocks])
      find_calls(function, Measure::short_lived_blocks, "short_lived", least_short_lived, short_lived_weight,
                 "short-lived: freed within " + with_commas(report_.short_lived_max) + " events",
                 "of all allocations are short-lived");
  }
  /// Adds a finding for a function whose reallocs mostly resize a block that a realloc made.
  void find_reallocated(const FunctionTotals& function) {
    if (2 * function.resized_again < function.totals.sum[Measure::reallocated_blocks]) return;
    find_calls(function, Measure::reallocated_blocks, "reallocated", least_reallocated, reallocated_weight,
               "reallocs of another block, which grows or shrinks step by step",
               "of all allocations resize a block step by step");
  }
  void find_other_thread(const FunctionTotals& function) {
    find_calls(function, Measure::other_thread_blocks, "other_thread", least_other_thread, other_thread_weight,
               "freed by another thread than the one that made them", "of all allocations are freed by another thread");
  }

  void find_untouched(const FunctionTotals& function) {
    const std::uint64_t bytes = function.totals.sum[Measure::untouched_bytes], all = report_.total.allocated_bytes;
    if (share(bytes, all) < least_untouched || bytes < least_bytes ||
        staying_[index_of(function.function)] == Stays::library)
      return;
    Finding& finding = add_of_function("untouched", function.function, share(bytes, all) * untouched_weight,
                                       [](const NodeTotals& node) { return node.sum[Measure::untouched_bytes]; });
    const bool is_least = report_.total.lost.unknown_touch_bytes != 0;
    finding.figure = bytes_text(bytes);
    finding.headline = (is_least ? "or more never touched, in " : "never touched, in ") + own_code_text(bytes);
    finding.text = name_of(function.function) + ": " + (is_least ? "at least " : "") + bytes_text(bytes) +
                   " asked for were never touched, " +
                   percent_text(bytes, function.totals.sum[Measure::allocated_bytes]) + " of what it asked for" +
                   caller_text(bytes);
    finding.figures = {{"bytes", bytes},
                       {"function_allocated_bytes", function.totals.sum[Measure::allocated_bytes]},
                       {"allocated_bytes", all}};
    add_caller(finding);
  }

  /// Adds leaks, memory that is still live, and growth, for functions with much memory at the peak or at the end.
  void find_trends() {
    std::vector<FunctionId> candidates;
    for (const FunctionTotals& each : functions_) {
      const std::uint64_t most = std::max(each.totals.peak_bytes, each.totals.sum[Measure::leaked_bytes]);
      if (share(most, peak_bytes_) >= least_leak && most >= least_bytes &&
          staying_[index_of(each.function)] != Stays::library)
        candidates.push_back(each.function);
    }
    const std::size_t end = end_of_allocation(report_.moments);
    // A table that is loaded at the start rises steadily while it is loaded. It stays live afterwards, and is no leak.
    const bool may_leak = !report_.total.truncated && !is_early(end);
    const MomentPlaces places = places_of(recording_, report_.moments);
    for (const FunctionSeries& series : series_of(recording_, changes_, candidates)) {
      const StillLive live = still_live_of(series, end, places);
      // Processes that end one after the other leave memory, which adds up as a leak does.
      const bool is_held = series.live_bytes[live.moment] >= live.bytes / 2;
      if (live.is_steady && may_leak && is_held && staying_[index_of(series.function)] == Stays::no &&
          share(live.bytes, peak_bytes_) >= least_leak && live.bytes >= least_bytes)
        add_leak(series, live);
      else
        find_growth(series, live, end);
    }
    add_growths(end);
  }

  /// Whether a moment is in the first two thirds of the moments, or of the time that the program is known to have run.
  bool is_early(std::size_t moment) const {
    if (moment * 3 < (report_.moments.allocated_bytes.size() - 1) * 2) return true;
    if (recording_.traces().size() != 1) return false;
    const TraceFigures& trace = recording_.traces().front();
    const std::vector<Interval>& intervals = trace.model->intervals().intervals();
    if (moment == 0 || moment > intervals.size() || trace.process.recorded_ns == unknown) return false;
    const std::uint64_t time = intervals[moment - 1].last_time_ns;
    return time != unknown && time / 2 < trace.process.recorded_ns / 3;
  }

  /// Functions that rise alike below the same function of the program, which is not its outermost one, have one cause,
  /// and are one finding: that of the largest.
  void add_growths(std::size_t end) {
    const auto grown = [](const Rising& each) { return each.growth.last_mean - each.growth.first_mean; };
    std::stable_sort(rising_.begin(), rising_.end(),
                     [&](const Rising& a, const Rising& b) { return grown(a) > grown(b); });
    std::vector<Rising> causes;
    for (Rising& each : rising_) {
      const auto largest = largest_caller(tree_, callers_, totals_, each.series.function,
                                          [](const NodeTotals& node) { return node.peak_bytes; });
      each.path = callers_.path_of(largest.node, near_callers + 1);
      if (!each.path.empty()) each.path.pop_back();
      const auto is_same = [&](const Rising& cause) {
        const auto found = std::find_first_of(each.path.begin(), each.path.end(), cause.path.begin(), cause.path.end());
        return found != each.path.end() && rise_alike(each.series, cause.series, end);
      };
      const auto same = std::find_if(causes.begin(), causes.end(), is_same);
      if (same == causes.end()) {
        causes.push_back(std::move(each));
        continue;
      }
      ++same->functions_alike;
      same->common = *std::find_first_of(each.path.begin(), each.path.end(), same->path.begin(), same->path.end());
      same->grown_alike += grown(each);
    }
    for (const Rising& cause : causes) add_growth(cause, end);
  }

  void add_leak(const FunctionSeries& series, const StillLive& live) {
    Finding& finding = add_of_function(
        "leak", series.function, weight_of_end(leak_base + share(live.bytes, peak_bytes_), live.bytes, live.blocks),
        [](const NodeTotals& node) { return node.sum[Measure::leaked_bytes]; });
    const std::uint64_t event = report_.moments.event[live.last];
    const std::uint64_t all = functions_[index_of(series.function)].totals.sum[Measure::leaked_bytes];
    finding.figure = bytes_text(live.bytes);
    const bool is_late = live.begin >= late_leak;
    finding.headline =
        (is_late ? "steady leak, or a table that is filled late, in " : "steady leak in ") + own_code_text(all);
    finding.urgent = true;
    finding.text = name_of(series.function) + " " + verb("leaks", "leak") +
                   (live.is_by_events ? " steadily, by events: " : " steadily: ") + bytes_text(live.bytes) + " in " +
                   blocks_text(live) + ", allocated up to " + place_text(live.last) + ", are " + end_text() +
                   caller_text(all, " of all " + bytes_text(all)) + later_text(live, all);
    if (is_late)
      finding.text += "; it begins after " + output::fixed(100 * live.begin, 0) +
                      " % of the time: a table that the program fills from then on looks the same";
    finding.figures = figures_of(live, event, all);
    finding.figures.push_back({"peak_bytes", peak_bytes_});
    add_caller(finding);
    finding.span = {0, static_cast<std::uint32_t>(live.moment)};
  }

  void find_growth(const FunctionSeries& series, const StillLive& live, std::size_t end) {
    const auto growth = growth_of(series, end);
    const bool is_loaded_once = growth && !growth->is_freed && is_early(end);
    if (growth && !is_loaded_once && growth->last_mean > growth->first_mean &&
        share(growth->last_mean - growth->first_mean, peak_bytes_) >= least_growth) {
      rising_.push_back({series, *growth, {}});
      return;
    }
    if (share(live.bytes, peak_bytes_) < least_live || live.bytes < least_bytes) return;
    const bool is_pool = staying_[index_of(series.function)] == Stays::pool;
    const double usual = share(live.bytes, peak_bytes_) * live_weight;
    Finding& finding =
        add_of_function("live_at_end", series.function, is_pool ? usual : weight_of_end(usual, live.bytes, live.blocks),
                        [](const NodeTotals& node) { return node.sum[Measure::leaked_bytes]; });
    const std::uint64_t event = report_.moments.event[live.last];
    const std::uint64_t all = functions_[index_of(series.function)].totals.sum[Measure::leaked_bytes];
    finding.figure = bytes_text(live.bytes);
    finding.headline = end_text() + ", in " + own_code_text(all);
    finding.text = name_of(series.function) + ": " + bytes_text(live.bytes) + " in " + blocks_text(live) +
                   ", allocated up to " + place_text(live.last) + ", " + (live.blocks == 1 ? "is " : "are ") +
                   end_text() + caller_text(all, " of all " + bytes_text(all)) + later_text(live, all);
    if (is_pool) finding.text += std::string(pool_text);
    finding.figures = figures_of(live, event, all);
    add_caller(finding);
    finding.span = {0, static_cast<std::uint32_t>(live.moment)};
  }

  void add_growth(const Rising& rising, std::size_t end) {
    const Growth& growth = rising.growth;
    assert(growth.last_mean > growth.first_mean);
    const std::uint64_t grown = growth.last_mean - growth.first_mean + rising.grown_alike;
    Finding& finding =
        add_of_function("growth", rising.series.function, growth_base + share(grown, peak_bytes_) * growth_weight,
                        [](const NodeTotals& node) { return node.peak_bytes; });
    const std::uint64_t at_peak = functions_[index_of(rising.series.function)].totals.peak_bytes;
    finding.figure = bytes_text(grown);
    finding.headline = (growth.is_freed ? "more live bytes until " + place_text(end) : "more live bytes to the end") +
                       ", in " + own_code_text(at_peak);
    finding.text =
        name_of(rising.series.function) +
        (growth.is_freed ? ": what is live rises until " + place_text(end) + ", and at the end " +
                               (growth.recording_end == 0 ? "nothing" : bytes_text(growth.recording_end)) + " is live: "
                         : " " + verb("grows", "grow") + " to the end: ") +
        "on average " + bytes_text(growth.first_mean) + " in the first third, " + bytes_text(growth.last_mean) +
        " in the last" + caller_text(at_peak, " of it at the peak");
    if (staying_[index_of(rising.series.function)] == Stays::pool) finding.text += std::string(pool_text);
    if (rising.functions_alike != 0)
      finding.text += "; " + counted(rising.functions_alike, "other function") + " below " + name_of(rising.common) +
                      (rising.functions_alike == 1 ? " rises" : " rise") + " alike";
    finding.figures = {{"first_mean_bytes", growth.first_mean},
                       {"last_mean_bytes", growth.last_mean},
                       {"recording_end_bytes", growth.recording_end},
                       {"functions_alike", rising.functions_alike},
                       {"first_third_moment", growth.first_third},
                       {"last_third_moment", growth.last_third},
                       {"end_moment", end}};
    finding.span = {static_cast<std::uint32_t>(growth.first_third), static_cast<std::uint32_t>(growth.last_third)};
  }

  void find_burst() {
    if (recording_.traces().size() != 1) return;  // the common memory of several between two moments is not known
    const auto burst = burst_of(report_.moments.peak_bytes);
    if (!burst || peak_bytes_ < least_bytes) return;
    const auto& peaks = report_.moments.peak_bytes;
    // The recording ends in it, so nobody knows how long it lasts.
    if (burst->end + 1 == peaks.size() && report_.moments.live_bytes.back() > peak_bytes_ / 2) return;
    std::uint64_t outside = 0;
    for (std::size_t moment = 0; moment < peaks.size(); ++moment) {
      if (moment <= burst->begin || moment > burst->end) outside = std::max(outside, peaks[moment]);
    }
    Finding& finding =
        add("burst", "memory", share(peak_bytes_ - std::min(outside, peak_bytes_), peak_bytes_) * burst_weight);
    const std::uint64_t first = report_.moments.event[burst->begin], last = report_.moments.event[burst->end];
    finding.figure = bytes_text(peak_bytes_);
    finding.headline =
        "the peak is a short burst between " + place_text(burst->begin) + " and " + place_text(burst->end);
    finding.text = "the peak of " + bytes_text(peak_bytes_) + " is a short burst between " + place_text(burst->begin) +
                   " and " + place_text(burst->end) + ": at all other times at most " + bytes_text(outside) +
                   " are live";
    finding.figures = {
        {"peak_bytes", peak_bytes_}, {"outside_bytes", outside}, {"first_event", first + 1}, {"last_event", last}};
    finding.span = {static_cast<std::uint32_t>(burst->begin), static_cast<std::uint32_t>(burst->end)};
  }

  /// Adds functions whose old blocks keep pages from being given back, at the moment when they keep most.
  void find_pins() {
    if (pages_.pass == nullptr) return;
    const analysis::Summary& summary = pages_.pass->summary;
    const PagePass::Moment& at = pages_.pass->most_separable;
    std::uint64_t all = 0;
    for (const PageHolder& holder : pages_.pinning) all += pinned_bytes(holder);
    if (all < least_pinned_bytes || share(all, at.pages * summary.page_size) < least_pinned) return;
    const std::string place =
        at.time_ns == unknown ? "event " + with_commas(at.event) : output::time_text(static_cast<double>(at.time_ns));
    for (const PageHolder& holder : pages_.pinning) {
      const std::uint64_t bytes = pinned_bytes(holder);
      if (share(bytes, all) >= least_of_pinned)
        add_pins(holder, all, place, share(bytes, summary.pages_peak * summary.page_size) * pins_weight);
    }
  }

  /// Returns the bytes that would be free if these old blocks were packed, apart from others. Returns 0 if they would
  /// free less than half of their pages: no other block of such a size has room beside one of them anyway.
  static std::uint64_t pinned_bytes(const PageHolder& holder) {
    const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(holder.use.separable_bytes, 0));
    return share(bytes, holder.use.old_page_bytes) < least_of_old_pages ? 0 : bytes;
  }

  void add_pins(const PageHolder& holder, std::uint64_t all, const std::string& place, double weight) {
    const std::uint64_t bytes = pinned_bytes(holder);
    TotalsByNode separable_by_node(totals_.size());
    for (const auto& [node, of_node] : holder.separable_by_node) {
      NodeTotals separable;
      separable.peak_bytes = static_cast<std::uint64_t>(of_node);
      if (of_node > 0) separable_by_node.append(node, separable);
    }
    Finding& finding = add_of_function(
        "pins", holder.function, weight, [](const NodeTotals& node) { return node.peak_bytes; }, &separable_by_node);
    finding.part = "pages";
    const std::string& phase = pages_.pass->phases[holder.phase];
    const auto of_phase = static_cast<std::uint64_t>(holder.separable_of_phase);
    std::string during;
    if (!phase.empty()) {
      const bool is_nearly_all = share(of_phase, bytes) >= 0.995;
      during = (is_nearly_all ? "" : ", " + percent_text(of_phase, bytes) + " of it") + " during " +
               output::shortened(text::to_line(phase), name_columns);
    }
    const bool is_known = finding.function != "[unknown]";
    finding.figure = bytes_text(bytes);
    finding.headline =
        "old blocks keep their pages, in " + (is_known ? own_code_text(bytes) : "stacks that are not known");
    finding.text =
        percent_text(bytes, all) + " of what old blocks pin on their pages (" + bytes_text(bytes) + " at " + place +
        ") " + (is_known ? "was allocated by " + name_of(holder.function) : "is of blocks whose stack is not known") +
        caller_text(bytes) + during + ": " + counted(holder.use.old_blocks, "old block") + ", " +
        bytes_text(holder.use.old_bytes);
    finding.figures = {{"separable_bytes", bytes},
                       {"all_separable_bytes", all},
                       {"event", pages_.pass->most_separable.event},
                       {"old_blocks", holder.use.old_blocks},
                       {"old_bytes", holder.use.old_bytes},
                       {"old_page_bytes", holder.use.old_page_bytes},
                       {"pinned_pages", holder.use.pinned_pages}};
    add_caller(finding);
  }

  /// Adds memory that is resident and not live, and memory that is live and not resident, of each process. Both figures
  /// of a finding are of the same sample, or bounds over the same span.
  void find_resident() {
    std::uint64_t largest_sum = 0;
    for (const TraceFigures& trace : recording_.traces()) {
      const ResidentSample& largest = trace.model->samples().largest();
      if (largest.is_known()) largest_sum += largest.resident_bytes;
    }
    for (const TraceFigures& trace : recording_.traces()) {
      const ResidentSamples& samples = trace.model->samples();
      const auto retentions = find_retentions(samples.spans(), least_beyond_live, retentions_max);
      for (const Retention& retention : retentions) add_retained(trace, retention, largest_sum);
      const auto has_largest = [&](const Retention& retention) {
        return retention.span.first.event <= samples.largest().event &&
               samples.largest().event <= retention.span.last.event;
      };
      if (std::none_of(retentions.begin(), retentions.end(), has_largest)) find_allocator(trace, largest_sum);
      find_not_resident(trace);
    }
  }

  /// "at 1.25 s", "at event 1,234", of several processes with the name of one before it.
  std::string sample_text(const TraceFigures& trace, const ResidentSample& sample, const std::string& word) const {
    const bool is_single = recording_.traces().size() == 1;
    const std::string name = output::shortened(text::to_line(trace.process.name), name_columns);
    return (is_single ? "" : name + ": ") + word + " " + sample_place(sample);
  }
  std::string sample_place(const ResidentSample& sample) const {
    return recording_.unit() == AxisUnit::time ? output::time_text(static_cast<double>(sample.position))
                                               : "event " + with_commas(sample.event);
  }

  /// The moments next to a time of one process.
  std::vector<std::uint32_t> moments_around(const TraceFigures& trace, const ResidentSample& first,
                                            const ResidentSample& last) const {
    const auto end =
        std::max<std::uint32_t>(1, static_cast<std::uint32_t>(std::ceil(recording_.place_of(trace, last.position))));
    const auto begin = static_cast<std::uint32_t>(recording_.place_of(trace, first.position));
    return {std::min(begin, end - 1), end};
  }

  void add_retained(const TraceFigures& trace, const Retention& retention, std::uint64_t largest_sum) {
    const SampleSpan& span = retention.span;
    Finding& finding = add("retained", "memory", share(retention.bytes(), largest_sum) * allocator_weight);
    finding.figure = bytes_text(retention.bytes());
    finding.headline =
        "resident and not live, " + sample_text(trace, span.first, "from") + " to " + sample_place(span.last);
    finding.text = sample_text(trace, span.first, "from") + " to " + sample_place(span.last) + ", at least " +
                   bytes_text(span.resident_bytes_min) + " are resident and at most " +
                   bytes_text(span.live_bytes_max) + " live: " + std::string(not_live_text);
    if (retention.live_bytes_before > span.live_bytes_max)
      finding.text += "; up to " + bytes_text(retention.live_bytes_before) + " were live before";
    finding.figures = {{"resident_bytes_min", span.resident_bytes_min},
                       {"live_bytes_max", span.live_bytes_max},
                       {"samples", span.samples},
                       {"live_bytes_before", retention.live_bytes_before},
                       {"first_event", span.first.event},
                       {"last_event", span.last.event}};
    finding.span = moments_around(trace, span.first, span.last);
  }

  /// Compares resident with live memory at the largest sample.
  void find_allocator(const TraceFigures& trace, std::uint64_t largest_sum) {
    const ResidentSample& largest = trace.model->samples().largest();
    if (!largest.is_known() || largest.resident_bytes < largest.live_bytes) return;
    const std::uint64_t beyond = largest.resident_bytes - largest.live_bytes;
    if (beyond < largest.resident_bytes / 4 || beyond < least_beyond_live) return;
    Finding& finding = add("allocator", "memory", share(beyond, largest_sum) * allocator_weight);
    finding.figure = bytes_text(beyond);
    finding.headline = "resident and not live, " + sample_text(trace, largest, "at");
    finding.text = sample_text(trace, largest, "at") + ", where the resident memory is largest (" +
                   bytes_text(largest.resident_bytes) + "), " + bytes_text(largest.live_bytes) +
                   " are live: " + std::string(not_live_text);
    finding.figures = figures_of(largest);
    finding.span = moments_around(trace, largest, largest);
  }

  /// Live bytes far above the resident ones cannot all be in memory.
  void find_not_resident(const TraceFigures& trace) {
    const ResidentSample& sample = trace.model->samples().least_backed();
    if (!sample.is_known()) return;
    const std::uint64_t absent = sample.live_bytes - sample.resident_bytes;
    if (absent < sample.live_bytes / 4 || absent < least_beyond_live) return;
    Finding& finding = add("not_resident", "memory", std::min(1.0, share(absent, peak_bytes_)) * untouched_weight);
    finding.figure = bytes_text(absent);
    finding.headline = "live and not resident, " + sample_text(trace, sample, "at");
    finding.text = sample_text(trace, sample, "at") + ", " + bytes_text(sample.live_bytes) + " are live and " +
                   bytes_text(sample.resident_bytes) +
                   " resident: the difference was not yet written to, was given back, or was swapped out";
    finding.figures = figures_of(sample);
    finding.span = moments_around(trace, sample, sample);
  }

  static std::vector<Figure> figures_of(const ResidentSample& sample) {
    return {{"resident_bytes", sample.resident_bytes}, {"live_bytes", sample.live_bytes}, {"event", sample.event}};
  }

  /// Adds losses and defects, which make the other findings doubtful.
  void find_lost() {
    const Lost& lost = report_.total.lost;
    const std::uint64_t altered = lost.repairs + lost.defects, doubtful = altered + lost.unknown_ends;
    if (altered != 0 || (lost.unknown_ends != 0 && !is_small_loss(lost.unknown_ends, report_.total.events))) {
      std::string parts;
      const auto add_part = [&parts](std::uint64_t count, const std::string& noun, const std::string& what) {
        if (count != 0) parts += (parts.empty() ? "" : "; ") + counted(count, noun) + what;
      };
      add_part(lost.repairs, "event", " lost or altered when the trace was written");
      add_part(lost.defects, "defect", " found now");
      add_part(lost.unknown_ends, "free",
               std::string(lost.unknown_ends == 1 ? " of an unknown block" : " of unknown blocks") +
                   ", made before the recording began or not recorded");
      Finding& finding = add("lost", "memory", share(doubtful, report_.total.events));
      finding.figure = altered != 0 ? counted(altered, "event") : counted(doubtful, "free");
      finding.headline = altered != 0 ? "lost, altered or wrong: the recording is not whole" : "of unknown blocks";
      if (is_small_loss(doubtful, report_.total.events)) finding.headline += ", but fewer than 1 in 10,000 events";
      finding.urgent = !is_small_loss(doubtful, report_.total.events);
      finding.text = (altered != 0 ? "the recording is not whole: " : "") + parts;
      finding.figures = {{"repairs", lost.repairs}, {"defects", lost.defects}, {"unknown_ends", lost.unknown_ends}};
    }
    if (report_.total.truncated) {
      Finding& finding = add("lost", "memory", 0.02);
      finding.headline = "the recording breaks off";
      finding.urgent = true;
      finding.text = "the recording breaks off: what was allocated or freed later is not known";
    }
    if (lost.unknown_stack_blocks == 0) return;
    Finding& finding = add("lost", "code", share(lost.unknown_stack_blocks, calls_));
    finding.figure = percent_text(lost.unknown_stack_blocks, calls_);
    finding.headline = "of all allocations have no known stack";
    finding.urgent = share(lost.unknown_stack_blocks, calls_) >= least_unknown_stacks;
    finding.text = "the stack of " + counted(lost.unknown_stack_blocks, "block") + " (" +
                   percent_text(lost.unknown_stack_blocks, calls_) + ") is not known";
    finding.figures = {{"unknown_stack_blocks", lost.unknown_stack_blocks}, {"allocated_blocks", calls_}};
  }

  const Recording& recording_;
  const CallTree& tree_;
  const Report& report_;
  const TotalsByNode& totals_;
  const ChangesByNode& changes_;
  const std::vector<NodeNumber>& node_of_;
  const HeldPages& pages_;
  std::uint64_t peak_bytes_;
  std::uint64_t calls_;
  Callers callers_;
  std::vector<FunctionTotals> functions_;
  std::vector<Stays> staying_;                                          // by function
  std::unordered_map<std::string, std::set<std::string>> short_names_;  // the functions that have it
  // For the finding that was added last:
  std::string caller_;  // empty: none
  std::uint64_t caller_amount_ = 0, own_amount_ = 0;
  std::string own_code_text_;  // the name of the user's own code
  std::string through_;        // the function that is charged; empty: the same
  std::vector<Rising> rising_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> find_findings(const Recording& recording, const Report& report, const TotalsByNode& totals,
                                   const ChangesByNode& changes, const std::vector<NodeNumber>& node_of,
                                   const HeldPages& pages) {
  return Finder(recording, report, totals, changes, node_of, pages).find();
}

}  // namespace cmt::report
