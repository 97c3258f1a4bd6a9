// By the idle bitmap: the frames of the process's pages are marked idle, and those that are not idle any more at the
// next look were touched. A huge page has one bit, at its first frame; the bits of its other frames read as touched
// always, as do those of frames that the kernel does not track, so both are told by their flags.
//
// By Referenced: clear_refs takes the accessed bits from all pages of the process, and smaps counts, for each mapping,
// those that have it again.

#include "cmtwatch/working_set/touch_meter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "toolkit/process/page_frames.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using process::FrameKind;
using process::Mapping;
using process::ResidentPage;

/// Address ranges that are reserved by the terabyte are left out: their page tables take seconds to walk.
constexpr std::uint64_t walked_bytes_max = std::uint64_t{64} << 30;

std::string bitmap_of(const TouchTarget& target) { return target.sys + "/kernel/mm/page_idle/bitmap"; }

std::uint64_t sum(const std::vector<TouchedMapping>& mappings, std::uint64_t (*of)(const TouchedMapping&)) {
  std::uint64_t bytes = 0;
  for (const TouchedMapping& mapping : mappings) bytes += of(mapping);
  return bytes;
}

/// The mappings in a file of the process, maps or smaps. A process without any is gone.
std::vector<Mapping> read_mappings(const TouchTarget& target, const char* name) {
  std::vector<Mapping> mappings =
      process::parse_smaps(process::read_file(process::path_of(target.pid, name, target.root)));
  if (mappings.empty())
    throw std::system_error(ESRCH, std::generic_category(), process::path_of(target.pid, name, target.root));
  std::erase_if(mappings, [&](const Mapping& mapping) { return !target.filter.takes(mapping); });
  return mappings;
}

bool is_walkable(const Mapping& mapping) { return mapping.end - mapping.begin <= walked_bytes_max; }

/// The frames of what is resident, each once, and what they are.
struct Frames {
  std::vector<std::uint64_t> numbers;
  std::vector<FrameKind> kinds;

  const FrameKind& of(const ResidentPage& page) const {
    const auto place = std::lower_bound(numbers.begin(), numbers.end(), page.frame) - numbers.begin();
    return kinds[static_cast<std::size_t>(place)];
  }
};

class IdleMeter : public TouchMeter {
 public:
  explicit IdleMeter(TouchTarget target)
      : target_(std::move(target)), idle_(bitmap_of(target_)), flags_(target_.root) {}

  /// What was listed to be read is marked as well: a page that came in between was touched.
  void mark() override {
    if (!listed_) list();
    idle_.set(heads_);
    listed_ = false;
  }

  Touched read() override {
    list();
    const std::vector<bool> idle = idle_.idle(heads_);
    Touched touched;
    touched.too_long = too_long_;
    for (const Listed& listed : listed_mappings_) {
      touched.mappings.push_back({listed.mapping, 0, 0});
      for (const ResidentPage& page : listed.pages) add(touched, frames_.of(page), page, idle);
    }
    return touched;
  }

 private:
  struct Listed {
    Mapping mapping;
    std::vector<ResidentPage> pages;
  };

  void list() {
    listed_mappings_.clear();
    too_long_ = 0;
    frames_ = {};
    for (Mapping& mapping : read_mappings(target_, "maps")) {
      if (!is_walkable(mapping)) {
        ++too_long_;
        continue;
      }
      auto pages = process::resident_pages(target_.pid, mapping.begin, mapping.end, target_.root);
      if (pages.empty()) continue;
      for (const ResidentPage& page : pages) frames_.numbers.push_back(page.frame);
      mapping.resident_bytes = pages.size() * process::page_bytes();
      listed_mappings_.push_back({std::move(mapping), std::move(pages)});
    }
    auto& numbers = frames_.numbers;
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    frames_.kinds = flags_.kinds(numbers);
    heads_ = process::heads_of(frames_.kinds);
    listed_ = true;
  }

  void add(Touched& touched, const FrameKind& kind, const ResidentPage& page, const std::vector<bool>& idle) const {
    TouchedMapping& mapping = touched.mappings.back();
    if (kind.huge) mapping.mapping.huge_page_bytes += process::page_bytes();
    if (!kind.tracked) {
      mapping.untracked_bytes += process::page_bytes();
      return;
    }
    const auto place = std::lower_bound(heads_.begin(), heads_.end(), kind.head) - heads_.begin();
    if (idle[static_cast<std::size_t>(place)]) return;
    mapping.touched_bytes += process::page_bytes();
    auto& runs = touched.pages;
    if (!runs.empty() && runs.back().first + runs.back().count == page.page)
      ++runs.back().count;
    else
      runs.push_back({page.page, 1});
  }

  TouchTarget target_;
  process::PageIdle idle_;
  process::PageFlags flags_;
  std::vector<Listed> listed_mappings_;
  Frames frames_;
  std::vector<std::uint64_t> heads_;
  std::size_t too_long_ = 0;
  bool listed_ = false;
};

class ReferencedMeter : public TouchMeter {
 public:
  explicit ReferencedMeter(TouchTarget target) : target_(std::move(target)) {}

  void mark() override { process::write_file(process::path_of(target_.pid, "clear_refs", target_.root), "1"); }

  Touched read() override {
    Touched touched;
    for (Mapping& mapping : read_mappings(target_, "smaps")) {
      if (mapping.resident_bytes == 0) continue;
      const std::uint64_t bytes = mapping.referenced_bytes;
      touched.mappings.push_back({std::move(mapping), bytes, 0});
    }
    return touched;
  }

 private:
  TouchTarget target_;
};

}  // namespace

std::uint64_t Touched::touched_bytes() const {
  return sum(mappings, [](const TouchedMapping& mapping) { return mapping.touched_bytes; });
}
std::uint64_t Touched::resident_bytes() const {
  return sum(mappings, [](const TouchedMapping& mapping) { return mapping.mapping.resident_bytes; });
}
std::uint64_t Touched::huge_page_bytes() const {
  return sum(mappings, [](const TouchedMapping& mapping) { return mapping.mapping.huge_page_bytes; });
}
std::uint64_t Touched::untracked_bytes() const {
  return sum(mappings, [](const TouchedMapping& mapping) { return mapping.untracked_bytes; });
}

std::optional<std::string> obstacle_to_idle(const TouchTarget& target) {
  const std::string bitmap = bitmap_of(target);
  if (access(bitmap.c_str(), F_OK) != 0)
    return "the kernel has no bitmap of idle pages (CONFIG_IDLE_PAGE_TRACKING), " + bitmap;
  if (!process::PageIdle(bitmap).available()) return bitmap + " may not be written";
  if (!process::PageFlags(target.root).available()) return target.root + "/kpageflags may not be read";
  for (const Mapping& mapping : read_mappings(target, "maps")) {
    if (!is_walkable(mapping)) continue;
    for (const ResidentPage& page : process::resident_pages(target.pid, mapping.begin, mapping.end, target.root)) {
      if (page.frame == 0)
        return "the frames in " + process::path_of(target.pid, "pagemap", target.root) + " are hidden from us";
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::unique_ptr<TouchMeter> make_touch_meter(TouchMethod method, const TouchTarget& target) {
  if (method == TouchMethod::idle) return std::make_unique<IdleMeter>(target);
  return std::make_unique<ReferencedMeter>(target);
}

}  // namespace cmt::watch
