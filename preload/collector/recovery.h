#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cmt::collector {

struct Recovered {
  std::uint64_t events = 0;
  std::uint64_t from_rings = 0;
  std::uint32_t rings_missing = 0;  ///< of threads, in a file that was cut off
  std::vector<std::string> paths;
};

/// Writes the trace of a program that ended together with its collector: what its files have, and behind that what its
/// rings have (CMTTRACE_RINGS). `outputs`: where to; empty: beside each file, "app.7.cmt" as "app.7.recovered.cmt". No
/// file is written over. Leaves the rings and the trace's files as they are. Throws FormatError and std::system_error,
/// and then leaves no output.
Recovered recover(const std::string& rings, std::vector<std::string> outputs);

}  // namespace cmt::collector
