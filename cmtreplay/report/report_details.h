#pragma once

#include <string>

#include "cmtreplay/report/report.h"

namespace cmt::output {
class JsonWriter;
}

namespace cmt::replay {

/// A table of latencies; empty where there are none.
std::string details_text(const Report& report);

/// Fields "latency" and "counters".
void write_details(output::JsonWriter& json, const Result& result);

}  // namespace cmt::replay
