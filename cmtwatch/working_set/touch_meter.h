#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/working_set/mapping_filter.h"
#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// What was touched of a mapping since it was marked. `mapping` has its place, name and resident and huge bytes.
struct TouchedMapping {
  process::Mapping mapping;
  std::uint64_t touched_bytes = 0;
  std::uint64_t untracked_bytes = 0;  ///< resident, and the kernel does not tell; not in touched_bytes
};

/// Pages beside each other, by number.
struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// What a process touched between two moments.
struct Touched {
  std::vector<TouchedMapping> mappings;  ///< those that are resident in part, by rising address
  std::vector<PageRun> pages;            ///< touched, rising; empty where the kernel tells of mappings only
  std::size_t too_long = 0;              ///< mappings of more addresses than can be walked: not looked at

  std::uint64_t touched_bytes() const;
  std::uint64_t resident_bytes() const;
  std::uint64_t huge_page_bytes() const;  ///< resident in huge pages: touched as a whole or not at all
  std::uint64_t untracked_bytes() const;
};

/// Tells what a process touches:
///
///     meter->mark();
///     ... the process runs ...
///     Touched touched = meter->read();
///     meter->mark();
///
/// Pages that came since the last mark count as touched; those that came and went since are not seen. Throws
/// std::system_error, of ENOENT or ESRCH where the process is gone.
class TouchMeter {
 public:
  virtual ~TouchMeter() = default;
  virtual void mark() = 0;
  virtual Touched read() = 0;
};

/// The two ways that there are.
enum class TouchMethod {
  idle,        ///< page by page, by the kernel's bitmap of idle pages
  referenced,  ///< mapping by mapping, by clear_refs and Referenced of smaps
};

/// Where the kernel's files are, and what is looked at.
struct TouchTarget {
  int pid = 0;
  std::string root = "/proc";
  std::string sys = "/sys";
  MappingFilter filter{};
};

/// Why pages cannot be told apart here; nothing where they can.
std::optional<std::string> obstacle_to_idle(const TouchTarget& target);

std::unique_ptr<TouchMeter> make_touch_meter(TouchMethod method, const TouchTarget& target);

}  // namespace cmt::watch
