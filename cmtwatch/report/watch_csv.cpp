#include "cmtwatch/report/csv.h"
#include "cmtwatch/report/watch_report.h"

namespace cmt::watch {
CsvReport::CsvReport(const Options& options, Destination& destination) : options_(options), destination_(destination) {
  const std::string bytes = std::string(name_of(options.metric)) + "_bytes";
  destination_.write((options_.verbose ? "begin_ns,end_ns,pid,parent_pid,name," + bytes
                                       : "begin_ns,end_ns," + bytes + ",processes,not_readable") +
                     (options_.pause && !options_.verbose ? ",paused_ns,not_paused" : "") +
                     (options_.trace.empty() ? ""
                      : options_.verbose     ? ",live_bytes,live_blocks"
                                             : ",live_bytes,live_blocks,not_traced") +
                     "\n");
}

/// ",BYTES,BLOCKS", both empty where they are not known; nothing where nobody was to be traced.
std::string CsvReport::live(const std::optional<Live>& live) const {
  if (options_.trace.empty()) return {};
  return live ? "," + std::to_string(live->bytes) + "," + std::to_string(live->blocks) : ",,";
}

void CsvReport::sample(const Sample& sample) {
  const std::string times = std::to_string(sample.begin_ns) + "," + std::to_string(sample.end_ns) + ",";
  if (!options_.verbose) {
    return destination_.write(
        times + (sample.processes != 0 ? std::to_string(sample.bytes) : "") + "," + std::to_string(sample.processes) +
        "," + std::to_string(sample.refused) +
        (options_.pause ? "," + std::to_string(sample.paused_ns) + "," + std::to_string(sample.not_paused) : "") +
        live(sample.live) + (options_.trace.empty() ? "" : "," + std::to_string(sample.untraced)) + "\n");
  }
  std::string rows;
  for (const ProcessReading& process : sample.by_process) {
    rows += times + std::to_string(process.pid) + "," + std::to_string(process.parent) + "," + quoted(process.name) +
            "," + (process.bytes ? std::to_string(*process.bytes) : "") + live(process.live) + "\n";
  }
  destination_.write(rows);
}

}  // namespace cmt::watch
