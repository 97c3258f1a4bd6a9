/// Why a process is as big as it is: its resident memory by parts, which add up, and what could be done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/explain/calls/remote_calls.h"
#include "cmtwatch/explain/heap/heap.h"
#include "cmtwatch/explain/memory/address_space.h"
#include "toolkit/process/control_group.h"

namespace cmt::watch::explain {

/// A part of the resident memory. The order is that of reports.
enum class PartKind {
  live,           ///< in blocks of malloc
  large,          ///< in blocks with mappings of their own
  trimmable,      ///< free: malloc_trim(0) would give it back
  pinned,         ///< free, on pages that other blocks keep
  arena_tops,     ///< free, at the ends of threads' arenas
  thread_caches,  ///< free, in threads' caches
  malloc_data,    ///< malloc's own
  owned,          ///< anonymous memory of an owner that was recognised
  anonymous,      ///< other anonymous memory
  stacks,         ///< of threads
  ended_stacks,   ///< of threads that have ended, kept for others
  files,          ///< pages of files, which the kernel can drop
  written_files,  ///< copies of file pages that were written to
  shared,         ///< shared memory
  special,        ///< [vdso] and its like
  changed,        ///< changed while it was read: the difference to the kernel's sum; may be negative
};

struct Part {
  PartKind kind = PartKind::changed;
  std::int64_t bytes = 0;
  std::string owner{};                        ///< of PartKind::owned
  bool is_likely = false;                     ///< the owner is a guess
  std::optional<std::uint64_t> live_bytes{};  ///< of the owner's memory, what is in use
  std::string remark{};
};

/// A file that is mapped, or shared memory, with all of its mappings.
struct FileMemory {
  PartKind kind = PartKind::files;             ///< files, or shared
  std::string name{};                          ///< as the kernel names the mappings
  std::uint64_t resident_bytes = 0;            ///< copied_bytes included
  std::uint64_t copied_bytes = 0;              ///< copies of pages that were written to, of the part written_files
  std::optional<std::uint64_t> own_bytes{};    ///< on pages that are mapped once; nullopt: of a core file
  std::optional<std::uint64_t> dirty_bytes{};  ///< copies, and written pages that the kernel has yet to store
  std::uint64_t proportional_bytes = 0;        ///< each page divided by the number of its mappings
  std::uint64_t times_mapped = 1;              ///< by this process, a quarter of its mappings or more: so often counted

  std::optional<std::uint64_t> shared_bytes() const {
    return own_bytes ? std::optional(resident_bytes - std::min(resident_bytes, *own_bytes)) : std::nullopt;
  }
};

/// The name of a part in reports and JSON: "live", "free, malloc_trim gives it back".
std::string part_name(const Part& part);
/// The same as a word for scripts: "live", "trimmable".
std::string part_key(const Part& part);

struct Explanation {
  int pid = 0;                  ///< 0: of a core file
  int core_pid = 0;             ///< of a core file; 0: not known
  std::string program;          ///< its name
  std::int64_t wall_ns = 0;     ///< when it was looked at, since 1970
  std::int64_t stopped_ns = 0;  ///< how long the process was stopped; 0: it ran
  std::uint64_t resident_bytes = 0;
  std::vector<Part> parts;                                ///< add up to resident_bytes
  std::vector<FileMemory> files;                          ///< the largest first
  std::uint64_t swapped_bytes = 0, page_table_bytes = 0;  ///< not resident
  std::uint64_t huge_page_bytes = 0;                      ///< of resident_bytes
  std::uint64_t lazy_free_bytes = 0;                      ///< of resident_bytes: given back with MADV_FREE
  std::uint64_t hugetlb_bytes = 0;                        ///< of resident_bytes, but not of the kernel's RSS
  std::optional<std::uint64_t> huge_zero_bytes;           ///< of these, pages of zeros; nullopt: not looked for
  std::uint64_t threads = 0, ended_stacks = 0;
  NoGlibc why_no_heap = NoGlibc::none;
  int glibc_minor = 0;         ///< 0: not known
  std::string other_malloc{};  ///< the library of another malloc, if one is loaded; empty: none is known
  std::optional<GlibcHeap> heap;
  std::optional<process::GroupMemory> group;
  std::optional<AllocatorFigures> allocator;  ///< what another malloc answers, if it was asked
  std::optional<TrimResult> trim;             ///< of malloc_trim(0), if it was tried after the look
  bool is_trim_refused = false;               ///< it was to be tried, but its malloc is not glibc's
  std::vector<std::string> doubts;            ///< why figures may be off
  const BlockSites* sites = nullptr;          ///< of a trace; null: none is given

  std::uint64_t bytes_of(PartKind kind) const;
  /// The largest first, as reports list them.
  std::vector<Part> parts_by_size() const;
  /// Less is not worth a line in a report, nor is less than a twentieth of the resident memory.
  static constexpr std::uint64_t worth_bytes = 1 << 20;
  bool is_worth(std::uint64_t bytes) const { return bytes >= worth_bytes && bytes >= resident_bytes / 20; }
  /// The files that are worth a line.
  std::vector<FileMemory> large_files() const;
};

/// Looks at a memory. `sites`, here and below: of a trace of the process, which must live as long as the explanation.
Explanation explain(AddressSpace& memory, BlockSites* sites = nullptr);

/// The things that may be done in a process that is explained. By default nothing is.
struct ExplainRights {
  bool stops = false;         ///< all its threads are stopped meanwhile, so that the figures are exact
  bool calls = false;         ///< another malloc than glibc's is asked for its figures, by a call on one of the threads
  bool counts_zeros = false;  ///< huge pages are read to count their pages of zeros
  bool trims = false;         ///< malloc_trim(0) is called after the look, if glibc's malloc has memory
  bool are_stopped = false;   ///< the caller has stopped all its threads
};

/// Looks at a process that runs. Throws std::runtime_error, with a remedy, if that is not permitted.
Explanation explain_process(int pid, const ExplainRights& rights, BlockSites* sites = nullptr);

/// Whether a process is gone, or its parent has not yet asked for its status.
bool has_ended(int pid);

/// Looks at a core file. Throws as open_core().
Explanation explain_core(const std::string& path, BlockSites* sites = nullptr);

/// The things that could be done, one in each text, the most important first. Nothing is advised that was not computed.
std::vector<std::string> advice_for(const Explanation& explanation);

}  // namespace cmt::watch::explain
