#pragma once

#include <string>

#include "preload/collector/flight/flight_sink.h"

namespace cmt::collector {

/// A file of what was kept at a moment.
struct WrittenFlight {
  std::string path;
  FlightSpan span;
};

/// Writes what is kept beside the trace, while the recording goes on: of app.cmt to app.kept.1.cmt, or to the next
/// number that is free. Tools that open it meanwhile wait until it is whole. Throws std::system_error, and then leaves
/// no file.
WrittenFlight write_beside(const std::string& trace, FlightSink& kept, const Repairs& repairs);

}  // namespace cmt::collector
