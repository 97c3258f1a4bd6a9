/// Measures which memory a process touches in an interval, by marks that the kernel keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// The mappings of a process that are measured.
struct MappingFilter {
  enum class Kind {
    heap,       ///< "[heap]"
    anonymous,  ///< without a name, or with one that the program gave it ("[anon:…")
    file,       ///< of a path, or shared memory
    stack,      ///< the first thread's
  };

  std::set<Kind> kinds;           ///< empty: all mappings, also those of no kind
  std::string permissions;        ///< letters of "rwx" that a mapping must have
  std::uint64_t longer_than = 0;  ///< pages

  bool accepts(const process::Mapping& mapping) const;
};

constexpr const char* mapping_kind_names = "heap, anonymous, file and stack";

std::string_view name_of(MappingFilter::Kind kind);

/// Parses "heap,file"; nullopt if a word is not a kind.
std::optional<std::set<MappingFilter::Kind>> parse_mapping_kinds(std::string_view text);

template <class Visitor, output::DescribedAs<MappingFilter> F>
void describe(Visitor& field, F& filter) {
  std::vector<std::string> kinds;
  for (const MappingFilter::Kind kind : filter.kinds) kinds.emplace_back(name_of(kind));
  field("kinds", kinds, "of --kind; empty: all");
  field("permissions", filter.permissions, "of --permissions");
  field("longer_than_pages", filter.longer_than, "of --longer-than");
}

/// How much of a mapping was touched since it was marked. `mapping` has its addresses, name, resident and huge bytes.
struct TouchedMapping {
  process::Mapping mapping;
  std::uint64_t touched_bytes = 0;
  std::uint64_t untracked_bytes = 0;  ///< resident, but not tracked by the kernel; not in touched_bytes
};

template <class Visitor, output::DescribedAs<TouchedMapping> M>
void describe(Visitor& field, M& touched) {
  const process::Mapping& mapping = touched.mapping;
  field("begin", output::hex(mapping.begin), "the first address");
  field("end", output::hex(mapping.end), "one past the last");
  field("permissions", mapping.permissions, "as in smaps");
  field("name", mapping.name, "empty: anonymous");
  field("working_set_bytes", touched.touched_bytes, "touched in the interval");
  field("resident_bytes", mapping.resident_bytes, "in memory");
  field("huge_page_bytes", mapping.huge_page_bytes, "in huge pages, which are touched as a whole or not at all");
  field("not_tracked_bytes", touched.untracked_bytes, "resident, but not tracked by the kernel");
}

/// A run of pages, by page number.
struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The memory that a process touched between two moments.
struct Touched {
  std::vector<TouchedMapping> mappings;  ///< those with resident pages, by rising address
  std::vector<PageRun> pages;            ///< touched pages, rising; empty if only mappings are known
  std::size_t too_long = 0;              ///< mappings of too many addresses to walk, which were left out

  /// The figures of all mappings added up; its `mapping` has no addresses.
  TouchedMapping sum() const;
  std::uint64_t touched_bytes() const { return sum().touched_bytes; }
  std::uint64_t resident_bytes() const { return sum().mapping.resident_bytes; }
  std::uint64_t huge_page_bytes() const { return sum().mapping.huge_page_bytes; }
  std::uint64_t untracked_bytes() const { return sum().untracked_bytes; }
};

/// Measures which memory a process touches:
///
///     meter->mark();
///     ... the process runs ...
///     Touched touched = meter->read();
///     meter->mark();
///
/// Pages that became resident since the last mark count as touched; those that came and went since are not seen. Throws
/// std::system_error, with ENOENT or ESRCH if the process is gone.
class TouchMeter {
 public:
  virtual ~TouchMeter() = default;
  virtual void mark() = 0;
  virtual Touched read() = 0;
};

/// How touched memory is found.
enum class TouchMethod {
  idle,        ///< page by page, by the kernel's bitmap of idle pages
  referenced,  ///< mapping by mapping, by clear_refs and Referenced of smaps
};

/// The process that is measured, and the kernel's files.
struct TouchTarget {
  int pid = 0;
  std::string root = "/proc";
  std::string sys = "/sys";
  MappingFilter filter{};
};

/// The reason why TouchMethod::idle cannot be used; nullopt if it can.
std::optional<std::string> obstacle_to_idle(const TouchTarget& target);

std::unique_ptr<TouchMeter> make_touch_meter(TouchMethod method, const TouchTarget& target);

}  // namespace cmt::watch
