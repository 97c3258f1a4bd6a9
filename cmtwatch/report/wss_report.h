/// The report of cmtwatch wss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/report/report_output.h"
#include "cmtwatch/working_set/reuse_distance.h"
#include "cmtwatch/working_set/working_set.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

/// Shows working sets in the form that the options ask for while they are measured and at the end, and draws their
/// picture.
class WssReport {
 public:
  /// Opens the picture's file at once. Both arguments outlive it. Throws as PictureFile does.
  WssReport(const WssOptions& options, Destination& destination);

  /// Called once, before the first sample.
  void begin(const WssMethod& method);
  void sample(const WorkingSet& set);
  void end(const WorkingSetRun& run);

 private:
  std::string range_line() const;
  std::string reuse_line() const;
  std::string grain_lines() const;
  std::string json(const WorkingSetRun& run) const;

  /// Over all intervals, for the last lines.
  struct Range {
    std::uint64_t intervals = 0;
    std::int64_t shortest_ns = INT64_MAX, longest_ns = 0;
    std::uint64_t sum_bytes = 0, least_bytes = UINT64_MAX, most_bytes = 0;
    std::uint64_t huge_bytes = 0, untracked_bytes = 0;
    std::size_t too_long = 0;
  };

  const WssOptions& options_;
  Destination& destination_;
  std::optional<picture::PictureFile> picture_;
  WssMethod method_;
  Range range_;
  ReuseDistance reuse_;           ///< of pages; empty if only mappings are known
  std::vector<WorkingSet> sets_;  ///< kept for the JSON document and the picture
};

/// Three panels: the working set over time, its pages (or mappings if pages are not known), and the hit rate of a
/// memory of so many bytes.
picture::Picture wss_picture(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                             const ReuseDistance& reuse);

}  // namespace cmt::watch
