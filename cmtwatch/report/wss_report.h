#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmtwatch/report/report_output.h"
#include "cmtwatch/working_set/reuse_distance.h"
#include "cmtwatch/working_set/working_set.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

/// Shows working sets while they are measured and at the end, in one form.
class WssReport {
 public:
  virtual ~WssReport() = default;
  virtual void sample(const WorkingSet& set) = 0;
  /// `reuse` is of pages, and empty where they cannot be told apart.
  virtual void end(const WorkingSetRun& run, const ReuseDistance& reuse) = 0;
};

/// The report that the options ask for. The arguments outlive it.
std::unique_ptr<WssReport> make_wss_report(const WssOptions& options, const WssMethod& method,
                                           Destination& destination);

/// Schema cmt.wss/1.
std::string wss_json(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                     const WorkingSetRun& run, const ReuseDistance& reuse);

/// The working set over time; its pages, or mappings where pages cannot be told apart; and of pages, the share of their
/// uses that a memory of so many bytes would have held.
output::Picture wss_picture(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                            const ReuseDistance& reuse);

}  // namespace cmt::watch
