// TouchMethod::idle marks the frames of the process's pages idle in the kernel's bitmap; frames that are no longer idle
// when they are read were touched. A huge page has one bit, at its first frame. The bits of its other frames always
// read as touched, and so do those of frames that the kernel does not track: both are recognised by their flags.
//
// TouchMethod::referenced writes clear_refs, which clears the accessed bits of all pages of the process, and reads
// smaps, which counts for each mapping the pages that have it again.

#include "cmtwatch/working_set/touch_meter.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
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

using Kind = MappingFilter::Kind;

constexpr std::array<std::string_view, 4> kind_names{"heap", "anonymous", "file", "stack"};

std::optional<Kind> kind_of(const process::Mapping& mapping) {
  if (mapping.name == "[heap]") return Kind::heap;
  if (mapping.name.empty() || mapping.name.starts_with("[anon")) return Kind::anonymous;
  if (mapping.name.starts_with("/")) return Kind::file;
  if (mapping.name.starts_with("[stack")) return Kind::stack;
  return std::nullopt;
}

/// Larger mappings are left out: some programs reserve terabytes, whose page tables take seconds to walk.
constexpr std::uint64_t walked_bytes_max = std::uint64_t{64} << 30;

std::string bitmap_of(const TouchTarget& target) { return target.sys + "/kernel/mm/page_idle/bitmap"; }

/// The mappings in `name`, maps or smaps. A process without mappings is gone.
std::vector<Mapping> read_mappings(const TouchTarget& target, const char* name) {
  std::vector<Mapping> mappings =
      process::parse_smaps(process::read_file(process::path_of(target.pid, name, target.root)));
  if (mappings.empty())
    throw std::system_error(ESRCH, std::generic_category(), process::path_of(target.pid, name, target.root));
  std::erase_if(mappings, [&](const Mapping& mapping) { return !target.filter.accepts(mapping); });
  return mappings;
}

bool is_walkable(const Mapping& mapping) { return mapping.end - mapping.begin <= walked_bytes_max; }

std::size_t index_in(const std::vector<std::uint64_t>& sorted, std::uint64_t number) {
  return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
}

class IdleMeter : public TouchMeter {
 public:
  explicit IdleMeter(TouchTarget target)
      : target_(std::move(target)), idle_(bitmap_of(target_)), flags_(target_.root) {}

  /// Marks the pages that read() has listed, if it was just called: a page that came since then counts as touched.
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
    for (const MappingPages& of_mapping : listed_mappings_) {
      touched.mappings.push_back({of_mapping.mapping, 0, 0});
      for (const ResidentPage& page : of_mapping.pages)
        count_page(touched, kinds_[index_in(frames_, page.frame)], page, idle);
    }
    return touched;
  }

 private:
  struct MappingPages {
    Mapping mapping;
    std::vector<ResidentPage> pages;
  };

  void list() {
    listed_mappings_.clear();
    too_long_ = 0;
    frames_.clear();
    for (Mapping& mapping : read_mappings(target_, "maps")) {
      if (!is_walkable(mapping)) {
        ++too_long_;
        continue;
      }
      auto pages = process::resident_pages(target_.pid, mapping.begin, mapping.end, target_.root);
      if (pages.empty()) continue;
      for (const ResidentPage& page : pages) frames_.push_back(page.frame);
      mapping.resident_bytes = pages.size() * process::page_bytes();
      listed_mappings_.push_back({std::move(mapping), std::move(pages)});
    }
    std::sort(frames_.begin(), frames_.end());
    frames_.erase(std::unique(frames_.begin(), frames_.end()), frames_.end());
    kinds_ = idle_.kinds(flags_, frames_);
    assert(kinds_.size() == frames_.size());
    heads_ = process::heads_of(kinds_);
    listed_ = true;
  }

  void count_page(Touched& touched, const FrameKind& kind, const ResidentPage& page,
                  const std::vector<bool>& idle) const {
    TouchedMapping& mapping = touched.mappings.back();
    if (kind.huge) mapping.mapping.huge_page_bytes += process::page_bytes();
    if (!kind.tracked) {
      mapping.untracked_bytes += process::page_bytes();
      return;
    }
    if (idle[index_in(heads_, kind.head)]) return;
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
  std::vector<MappingPages> listed_mappings_;
  std::vector<std::uint64_t> frames_;  ///< of the resident pages, each once, rising
  std::vector<FrameKind> kinds_;       ///< of the frames
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

bool MappingFilter::accepts(const process::Mapping& mapping) const {
  if (!kinds.empty()) {
    const auto kind = kind_of(mapping);
    if (!kind || !kinds.contains(*kind)) return false;
  }
  const bool permitted = std::all_of(permissions.begin(), permissions.end(), [&](char letter) {
    return mapping.permissions.find(letter) != std::string::npos;
  });
  return permitted && (mapping.end - mapping.begin) / process::page_bytes() > longer_than;
}

std::string_view name_of(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::optional<std::set<Kind>> parse_mapping_kinds(std::string_view text) {
  std::set<Kind> kinds;
  for (;;) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto name = std::find(kind_names.begin(), kind_names.end(), word);
    if (name == kind_names.end()) return std::nullopt;
    kinds.insert(static_cast<Kind>(name - kind_names.begin()));
    if (word.size() == text.size()) return kinds;
    text.remove_prefix(word.size() + 1);
  }
}

TouchedMapping Touched::sum() const {
  TouchedMapping sum;
  for (const TouchedMapping& each : mappings) {
    sum.touched_bytes += each.touched_bytes;
    sum.untracked_bytes += each.untracked_bytes;
    sum.mapping.resident_bytes += each.mapping.resident_bytes;
    sum.mapping.huge_page_bytes += each.mapping.huge_page_bytes;
  }
  return sum;
}

std::optional<std::string> obstacle_to_idle(const TouchTarget& target) {
  const std::string bitmap = bitmap_of(target);
  if (access(bitmap.c_str(), F_OK) != 0)
    return "the kernel has no bitmap of idle pages (CONFIG_IDLE_PAGE_TRACKING), " + bitmap;
  process::PageIdle idle(bitmap);
  process::PageFlags flags(target.root);
  if (!idle.available()) return bitmap + " may not be written";
  if (!flags.available()) return target.root + "/kpageflags may not be read";
  for (const Mapping& mapping : read_mappings(target, "maps")) {
    if (!is_walkable(mapping)) continue;
    for (const ResidentPage& page : process::resident_pages(target.pid, mapping.begin, mapping.end, target.root)) {
      if (page.frame == 0)
        return "the frames in " + process::path_of(target.pid, "pagemap", target.root) + " are hidden from us";
      try {
        idle.idle(process::heads_of(idle.kinds(flags, {&page.frame, 1})));
      } catch (const std::system_error& error) {
        return error.what();
      }
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
