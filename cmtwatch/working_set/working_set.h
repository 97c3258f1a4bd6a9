#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmtwatch/sample/sampling.h"
#include "cmtwatch/working_set/touch_meter.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// One measured working set: what was touched between two moments, in nanoseconds since the first mark.
struct WorkingSet {
  std::int64_t begin_ns = 0;    ///< all was marked
  std::int64_t end_ns = 0;      ///< reading began
  std::int64_t reading_ns = 0;  ///< what reading took: what was touched meanwhile is in it or not
  std::int64_t marking_ns = 0;  ///< the same of marking, before begin_ns
  std::int64_t paused_ns = 0;   ///< for so long the process stood still at the end
  Touched touched;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
  std::uint64_t pages() const;
};

/// What `wss` is asked for.
struct WssOptions {
  enum class Form { text, json, csv };

  TouchTarget target;
  std::optional<TouchMethod> method{};  ///< none: the better one that works
  Pace pace{};
  Form form = Form::text;
  bool pause = false;
  bool verbose = false;  ///< each mapping
  bool bytes = false;
  std::string output;
  std::string plot;
};

/// How it was measured.
struct WssMethod {
  TouchMethod method = TouchMethod::idle;
  std::string obstacle;  ///< why not page by page; empty: it is, or was not wanted
};

extern const char wss_help[];
std::vector<command::Option> wss_options();

/// Throws UsageError.
WssOptions parse_wss(const command::CommandLine& line);

}  // namespace cmt::watch
