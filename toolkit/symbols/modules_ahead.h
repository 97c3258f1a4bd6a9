/// Opens modules while the trace is read, so that naming frames does not wait for them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cmt/stacks.h"
#include "toolkit/symbols/module_file.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::symbols {

/// Opens the modules that frames are in, on a thread of its own, while the trace is still read. To decompress the debug
/// information of a C library takes as long as a million events, and nobody could count meanwhile.
///
/// Skips a module that cannot be opened: name_frames() tries it again and says why. Opens no further module when those
/// that are open have 32 MiB of files with debug information.
class ModulesAhead {
 public:
  explicit ModulesAhead(const NamingOptions& options) : options_(options) {}
  ~ModulesAhead();
  ModulesAhead(const ModulesAhead&) = delete;
  ModulesAhead& operator=(const ModulesAhead&) = delete;

  /// To be called with one table, again when it may have grown. Skips frames that have names.
  void open_modules_of(const StackTable& stacks);

  /// The module, open, or null. Waits for all that is asked for so far; nothing more is opened then.
  std::unique_ptr<ModuleFile> take(const Module& module);

 private:
  static constexpr std::uint64_t bytes_max = 32 << 20;

  void ask_for(const Module& module);
  void open_all();
  void end();

  NamingOptions options_;
  FrameId seen_frames_ = 1;
  ModuleId last_ = 0;                                    // of the frame that was seen last
  std::set<std::pair<std::string, std::string>> known_;  // path and build id of all that were asked for
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModuleFile>> files_;  // by path and build id

  std::mutex mutex_;  // guards what follows, but the thread, and the files while that runs
  std::condition_variable asked_;
  std::queue<Module> wanted_;
  bool is_at_end_ = false;
  std::thread thread_;
};

}  // namespace cmt::symbols
