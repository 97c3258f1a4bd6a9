#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmtwatch/report/report.h"
#include "cmtwatch/working_set/reuse_distance.h"
#include "cmtwatch/working_set/working_set.h"

namespace cmt::watch {

/// What `wss` shows while it goes on and at its end, in one form.
class WssReport {
 public:
  virtual ~WssReport() = default;
  virtual void sample(const WorkingSet& set) = 0;
  /// `reuse` is of pages, and empty where they are not known.
  virtual void end(const Outcome& outcome, const ReuseDistance& reuse) = 0;
};

/// The report that the options ask for. The arguments outlive it.
std::unique_ptr<WssReport> make_wss_report(const WssOptions& options, const WssMethod& method,
                                           Destination& destination);

/// Schema cmt.wss/1.
std::string to_json(const WssOptions& options, const WssMethod& method, const std::vector<WorkingSet>& sets,
                    const Outcome& outcome, const ReuseDistance& reuse);

}  // namespace cmt::watch
