/// The view of cmtwatch record while it runs, and the picture at its end.
#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/recording/memory_kinds.h"
#include "cmtwatch/report/report_output.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/sampling.h"

namespace cmt::watch {

/// Shows a recording while it is made: on a terminal the last moments as columns, drawn over in place; elsewhere a line
/// for each moment. A command's streams are its own, so the view of its recording is one line, on a terminal only.
class RecordView {
 public:
  explicit RecordView(terminal::Beside beside);

  /// A moment of the recording: its number, its time since the recording began, and what was recorded.
  void show(std::int64_t tick, std::int64_t time_ns, std::size_t processes, MemorySum memory);

  /// The view on a terminal.
  LiveColumns& columns() { return columns_; }

  /// Prints the first moment with most memory among those shown, and the cost of recording. Returns false if there is
  /// no place for it: a command runs without a terminal.
  bool end(const SamplingCost& cost);

 private:
  struct Moment {
    std::int64_t tick = 0;
    std::int64_t time_ns = 0;
    std::size_t processes = 0;
    MemorySum memory{};
  };

  static std::string moment_text(const Moment& moment);
  std::string peak_text() const;
  std::string head() const;
  void print(const std::string& line);

  terminal::Beside beside_;
  LiveColumns columns_;
  bool prints_;
  std::uint64_t moments_ = 0;
  Moment last_, peak_;
};

/// A recording as a picture: memory stacked by kind under the line of all processes together; of several processes, by
/// process too. Axes, names and subtitle state whether the memory is proportional or resident.
picture::Picture recording_picture(const KindSeries& series, const std::string& title);

/// Its numbers, schema cmt.kinds/1.
std::string recording_json(const KindSeries& series, const std::string& title);

}  // namespace cmt::watch
