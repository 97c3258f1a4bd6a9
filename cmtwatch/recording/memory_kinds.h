/// Sorts the mappings of processes into kinds of memory, for one moment and for a whole recording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmtwatch/recording/recording.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/output/fields.h"

namespace cmt::watch {

/// A part of a process's memory: all mappings for one purpose, or of one file.
struct MemoryPart {
  std::string name;
  std::uint64_t mappings = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t proportional_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t swapped_bytes = 0;
};

template <class Visitor, output::DescribedAs<MemoryPart> P>
void describe(Visitor& field, P& part) {
  field("name", part.name, "its purpose, or the file that is mapped");
  field("mappings", part.mappings, "how many");
  field("resident_bytes", part.resident_bytes, "in memory");
  field("proportional_bytes", part.proportional_bytes, "each page divided by the processes that map it");
  field("anonymous_bytes", part.anonymous_bytes, "of no file");
  field("swapped_bytes", part.swapped_bytes, "in swap");
}

/// The memory of a moment in parts, in this order: stacks, thread stacks (guessed), heap, anonymous, sockets; then the
/// largest files by name, and the rest as "others". Parts without mappings are left out.
struct MemoryBreakdown {
  std::vector<MemoryPart> parts;
  MemoryPart sum;  ///< of all parts
};

/// The parts of one process's mappings, which rise by address: one for each, in their order. Kernels no longer name the
/// stacks of threads. An unnamed mapping above a guard of pthreads (unreadable, unnamed, at most 64 KiB) is taken for a
/// stack, and its part is marked as guessed.
///
/// A mapping that holds zero-initialised data of the file before and anonymous memory is two parts. The file's share of
/// its figures is at most the data's size, because the kernel does not report which of its pages are resident.
std::vector<MemoryPart> parts_of(const std::vector<RecordedMapping>& mappings);

/// The parts of all processes of a moment added up by name; the `named_max` largest files keep their names.
MemoryBreakdown break_down(const std::vector<std::vector<RecordedMapping>>& processes, std::size_t named_max = 20);

/// Coarse kinds of memory, in the order in which a picture stacks them.
enum class MemoryKind {
  heap,
  anonymous,
  stacks,    ///< of threads too
  files,     ///< programs, libraries with their data, and mapped files
  shared,    ///< shared memory without a file
  others,    ///< mappings of the kernel, such as [vdso]
  totals,    ///< of processes of which only the sums of the mappings were recorded
  not_read,  ///< resident memory by statm, of processes whose mappings were not read
  swapped,   ///< not resident
};
constexpr std::size_t memory_kinds = 9;

std::string_view name_of(MemoryKind kind);

/// The metric of its bytes: pss, except for not_read (rss) and swapped (swap).
Metric metric_of(MemoryKind kind);

using BytesByKind = std::array<std::uint64_t, memory_kinds>;

/// The proportional bytes by kind of one process's mappings, which rise by address, and their swapped bytes.
BytesByKind by_kind(const std::vector<RecordedMapping>& mappings);

/// A figure at each moment, and its value right after the moment, without the processes that ended there.
template <class Figure>
struct Course {
  std::vector<Figure> at{}, after{};
};

/// A whole recording, moment by moment. The processes add up to `sums`, and so do all kinds but `swapped`.
struct KindSeries {
  /// A process, or the mappings of one name in a process, or one without a name. Bytes of mappings are proportional.
  struct Band {
    int pid = 0;
    std::string name;
    Course<std::uint64_t> bytes{};  ///< 0 if it could not be read, or did not exist
    MemorySum all{};                ///< of a process, over its moments, for their metric
  };

  std::vector<std::int64_t> time_ns;
  Course<MemorySum> sums;  ///< of all processes
  MemorySum all{};         ///< over all moments, for the metric
  Course<BytesByKind> by_kind;
  std::vector<Band> processes;  ///< the largest ones, and the rest as one with pid 0; empty if there is only one
  std::vector<Band> mappings;   ///< the largest at any moment, and the rest as one with pid 0
  PartSeries parts{};           ///< resident memory by parts
};

/// Reads a recording twice, in the order of time: for the largest mappings, and for the series. Memory: the result, the
/// mappings of one moment, and a number for each mapping that ever was.
KindSeries read_kinds(database::Database& database);

}  // namespace cmt::watch
