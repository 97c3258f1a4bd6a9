/// The collector that serves the short processes of a command (preload/collector/shared/server.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::launch {

/// Starts the collector, and ends it with this object: the recordings that it has go on in collectors of their own.
/// Where it cannot be started, each process starts a collector, as those of another user always do.
class SharedCollector {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// `folder`: of its socket; a private one. `environment`: of the command. CMTTRACE_SHARED is added to it.
  SharedCollector(const std::string& folder, Environment& environment);
  ~SharedCollector();
  SharedCollector(const SharedCollector&) = delete;
  SharedCollector& operator=(const SharedCollector&) = delete;

 private:
  std::string path_;   // of the socket; empty: there is none
  process::Fd alive_;  // our end of a pipe
};

}  // namespace cmt::launch
