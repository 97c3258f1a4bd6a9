#pragma once

#include <string>

#include "preload/collector/keep/keep_sink.h"

namespace cmt::collector {

/// A file of what was kept at a moment.
struct WrittenKept {
  std::string path;
  KeptSpan span;
};

/// Writes what is kept beside the trace, while the recording goes on: of app.cmt to app.kept.1.cmt, or to the next
/// number that is free. Tools that open it meanwhile wait until it is whole. Throws std::system_error, and then leaves
/// no file.
WrittenKept write_beside(const std::string& trace, KeepSink& kept, const Repairs& repairs);

}  // namespace cmt::collector
