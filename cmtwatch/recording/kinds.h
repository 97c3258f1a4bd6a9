#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmtwatch/recording/database.h"
#include "cmtwatch/sample/metric.h"
#include "cmtwatch/sample/summed.h"
#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// What memory is, coarsely, in the order in which a picture stacks it.
enum class MemoryKind {
  heap,
  anonymous,
  stacks,    ///< of threads too
  files,     ///< programs, libraries with their data, and mapped files
  shared,    ///< memory without a file that processes share
  others,    ///< what the kernel maps
  totals,    ///< of processes of which the sums of the mappings alone were recorded
  not_read,  ///< resident by statm, of processes whose mappings were not or could not be read
  swapped,   ///< not resident
};
constexpr std::size_t memory_kinds = 9;

std::string_view name_of(MemoryKind kind);

/// What its bytes are of: proportional sets, but for what is not read and what is swapped out.
Metric metric_of(MemoryKind kind);

using BytesByKind = std::array<std::uint64_t, memory_kinds>;

/// The proportional bytes of one process's mappings, which rise by address, by kind; and what of them is swapped out.
BytesByKind by_kind(const std::vector<process::Mapping>& mappings);

/// A whole recording, moment by moment. Kinds without what is swapped out, and processes, are each what `sums` is.
struct KindSeries {
  struct Process {
    int pid = 0;
    std::string name;
    std::vector<std::uint64_t> bytes{};  ///< 0 where it was not there
    Summed all{};                        ///< its moments added up, for their metric
  };

  std::vector<std::int64_t> time_ns;
  std::vector<Summed> sums;  ///< of all processes
  std::vector<BytesByKind> by_kind;
  std::vector<Process> processes;  ///< the largest ones, and the rest as one with pid 0; empty where there is only one
};

/// Reads it once, in the order of time. Memory: what is returned, and the mappings that there are at one moment.
KindSeries read_kinds(Database& database);

}  // namespace cmt::watch
