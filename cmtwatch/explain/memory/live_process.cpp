// Reads a process that runs: its mappings, where its threads are, and its pages. Nothing stops it.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "cmtwatch/explain/memory/address_space.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::watch::explain {
namespace {

/// The arguments of PAGEMAP_SCAN, which Linux has from 6.7 on (include/uapi/linux/fs.h).
struct ScanArguments {
  std::uint64_t size, flags, begin, end, walk_end, regions, regions_max, pages_max, inverted, all_of, any_of, wanted;
};
struct ScannedRegion {
  std::uint64_t begin, end, categories;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArguments);
enum : std::uint64_t {
  scan_present = 1 << 3,
  scan_swapped = 1 << 4,
  scan_zero_page = 1 << 5,
  scan_huge = 1 << 6,
  scan_guard = 1 << 8
};

/// The bits of a page in /proc/PID/pagemap.
constexpr std::uint64_t pagemap_present = std::uint64_t{1} << 63, pagemap_swapped = std::uint64_t{1} << 62,
                        pagemap_guard = std::uint64_t{1} << 58;

class LiveProcess final : public AddressSpace {
 public:
  explicit LiveProcess(int process)
      : process_(process),
        pid_(living_thread(process)),
        pagemap_(::open(process::path_of(pid_, "pagemap").c_str(), O_RDONLY)) {
    try {
      mappings_ = process::read_smaps(pid_);
    } catch (const std::system_error& error) {
      refuse(error.code().value());
    }
    for (process::Mapping& mapping : mappings_) add_hugetlb(mapping);
    if (pagemap_.get() < 0) refuse(errno);
    LiveProcess::find_threads();
    if (std::any_of(mappings_.begin(), mappings_.end(), shares_pages))
      memory_ = process::Fd(::open(process::path_of(pid_, "mem").c_str(), O_RDONLY | O_CLOEXEC));
    check_readable();
  }

  void find_threads() override {
    threads_.clear();
    for (const int tid : process::read_threads(pid_)) {
      const bool has_ended = tid == process_ && process_ != pid_;
      if (!has_ended) threads_.push_back({tid, 0, read_stack_pointer(tid)});
    }
  }

  void read_pieces(std::span<const Piece> pieces) override {
    if (memory_.get() >= 0) {
      for (const Piece& piece : pieces) {
        const ssize_t got = ::pread(memory_.get(), piece.to, piece.bytes, static_cast<off_t>(piece.address));
        if (got > 0) read_bytes_ += static_cast<std::uint64_t>(got);
      }
      return;
    }
    constexpr std::size_t pieces_max = 1000;  // of one call: the kernel takes 1,024
    while (!pieces.empty()) {
      const auto now = pieces.subspan(0, std::min(pieces.size(), pieces_max));
      pieces = pieces.subspan(now.size());
      read_some(now);
    }
  }

  std::optional<std::vector<Range>> huge_pages(const process::Mapping& mapping) override {
    std::vector<Range> found;
    const auto take = [&found](const ScannedRegion& region) {
      if ((region.categories & (scan_present | scan_zero_page)) == scan_present)
        found.push_back({region.begin, region.end});
    };
    return scan(mapping, scan_huge, scan_present | scan_zero_page, take) ? std::optional(found) : std::nullopt;
  }

  /// Opens a file that /proc names. In a container the path begins at the process's root, after chroot(2) at ours.
  process::Fd open_mapped(const std::string& path) const {
    try {
      return files::open_regular_file(path, {.root = process::path_of(pid_, "root")});
    } catch (const std::exception&) {
      return files::open_regular_file(path);
    }
  }

  bool read_file(const std::string& path, std::uint64_t offset, std::span<char> to) const override {
    try {
      const process::Fd file = open_mapped(path);
      return ::pread(file.get(), to.data(), to.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(to.size());
    } catch (const std::exception&) {
      return false;
    }
  }

  bool read_file(const std::string& path, const FilePieceVisitor& visit) const override {
    try {
      return AddressSpace::read_file(open_mapped(path).get(), visit);
    } catch (const std::exception&) {
      return false;
    }
  }

 protected:
  std::vector<PageRun> runs_of(const process::Mapping& mapping) override {
    std::vector<PageRun> runs;
    while (has_scan_) {
      const std::uint64_t guard = knows_guards_ ? std::uint64_t{scan_guard} : 0;
      if (scan(mapping, scan_present | scan_swapped, scan_present | scan_swapped | scan_zero_page | guard,
               [&runs](const ScannedRegion& region) { note(region, runs); }))
        return runs;
      runs.clear();
      // Kernels before 6.16 or so refuse a category that they do not know.
      has_scan_ = std::exchange(knows_guards_, false);
    }
    runs.clear();
    look_up(mapping, runs);
    return runs;
  }

 private:
  // The kernel does not count these pages as resident, and names anonymous ones as a file.
  static void add_hugetlb(process::Mapping& mapping) {
    mapping.resident_bytes += mapping.hugetlb_bytes();
    mapping.private_bytes += mapping.private_hugetlb_bytes;
    if (mapping.shared()) return;
    mapping.anonymous_bytes += mapping.hugetlb_bytes();
    if (is_anonymous_hugetlb(mapping)) mapping.name.clear();
  }

  /// Whether a mapping of no file has pages in common with a forked process. The call process_vm_readv() would copy
  /// each page that it reads there, so both processes together grow by all that is read. Reading /proc/PID/mem takes a
  /// system call for each piece, and copies nothing.
  static bool shares_pages(const process::Mapping& mapping) {
    return !mapping.name.starts_with("/") && !mapping.shared() && mapping.anonymous_bytes != 0 &&
           mapping.resident_bytes > mapping.private_bytes;
  }

  [[noreturn]] void refuse(int error) const {
    const std::string process = "process " + std::to_string(process_);
    if (error == ENOENT || error == ESRCH) throw std::runtime_error(process + " does not exist");
    throw std::runtime_error(process + " may not be looked at: " + std::strerror(error) +
                             "; run this as root, or as the process's user with kernel.yama.ptrace_scope 0");
  }

  // The file ends with the stack pointer and the next instruction, if the thread does not run: of a system call, or
  // "-1 7ffc... 7f12...". Returns 0 otherwise.
  std::uint64_t read_stack_pointer(int tid) const {
    try {
      const std::string text = process::read_file(process::path_of(pid_, "task/" + std::to_string(tid) + "/syscall"));
      const std::size_t last = text.rfind(' ');
      const std::size_t before = last == text.npos || last == 0 ? text.npos : text.rfind(' ', last - 1);
      return before == text.npos ? 0 : std::strtoull(text.c_str() + before, nullptr, 16);
    } catch (const std::system_error&) {
      return 0;
    }
  }

  void check_readable() {
    for (const process::Mapping& mapping : mappings_) {
      if (!mapping.permissions.starts_with("rw") || mapping.anonymous_bytes == 0) continue;
      std::uint64_t word;
      const iovec to{&word, sizeof word};
      const iovec from{reinterpret_cast<void*>(mapping.begin), sizeof word};
      if (page(mapping.begin) != PageState::resident) continue;
      if (memory_.get() >= 0) return;  // the kernel has checked the same right
      if (::process_vm_readv(pid_, &to, 1, &from, 1, 0) < 0 && errno != EFAULT) refuse(errno);
      return;
    }
    if (mappings_.empty())
      throw std::runtime_error("process " + std::to_string(process_) + " has no memory of its own");
  }

  // The kernel ends the call at the first piece that it cannot read. Then that one is passed over.
  void read_some(std::span<const Piece> pieces) {
    std::vector<iovec> to, from;
    while (!pieces.empty()) {
      to.clear();
      from.clear();
      for (const Piece& piece : pieces) {
        to.push_back({piece.to, piece.bytes});
        from.push_back({reinterpret_cast<void*>(piece.address), piece.bytes});
      }
      const ssize_t moved = ::process_vm_readv(pid_, to.data(), to.size(), from.data(), from.size(), 0);
      if (moved < 0 && errno != EFAULT) return;
      std::uint64_t left = moved < 0 ? 0 : static_cast<std::uint64_t>(moved);
      read_bytes_ += left;
      std::size_t whole = 0;
      while (whole < pieces.size() && left >= pieces[whole].bytes) left -= pieces[whole++].bytes;
      pieces = pieces.subspan(std::min(pieces.size(), whole + 1));
    }
  }

  /// Calls take(region) for the pages with any of `any_of`, until the kernel refuses: then it returns false.
  template <class Take>
  bool scan(const process::Mapping& mapping, std::uint64_t any_of, std::uint64_t wanted, Take take) {
    for (std::uint64_t at = mapping.begin; at < mapping.end;) {
      ScanArguments arguments{};
      arguments.size = sizeof arguments;
      arguments.begin = at;
      arguments.end = mapping.end;
      arguments.regions = reinterpret_cast<std::uint64_t>(regions_.data());
      arguments.regions_max = regions_.size();
      arguments.any_of = any_of;
      arguments.wanted = wanted;
      const int found = ::ioctl(pagemap_.get(), pagemap_scan, &arguments);
      if (found < 0 || arguments.walk_end <= at) return false;
      for (int i = 0; i < found; ++i) take(regions_[static_cast<std::size_t>(i)]);
      at = arguments.walk_end;
    }
    return true;
  }

  static void note(const ScannedRegion& region, std::vector<PageRun>& runs) {
    if ((region.categories & (scan_zero_page | scan_guard)) != 0) return;
    const auto state = (region.categories & scan_present) != 0 ? PageState::resident : PageState::swapped;
    add_run(runs, {{region.begin, region.end}, state});
  }

  // This takes 8 bytes for each page, also of a mapping of terabytes. It ends as soon as all pages are found that smaps
  // counted, if the mapping is as large as that.
  void look_up(const process::Mapping& mapping, std::vector<PageRun>& runs) const {
    constexpr std::uint64_t large_bytes = std::uint64_t{1} << 40;
    const bool is_large = mapping.end - mapping.begin >= large_bytes;
    std::uint64_t left_bytes = is_large ? mapping.resident_bytes + mapping.swapped_bytes : mapping.end - mapping.begin;
    std::vector<std::uint64_t> entries(std::min<std::uint64_t>((mapping.end - mapping.begin) / page_bytes, 1 << 16));
    for (std::uint64_t begin = mapping.begin; begin < mapping.end && left_bytes != 0;) {
      const std::size_t wanted = std::min<std::uint64_t>(entries.size(), (mapping.end - begin) / page_bytes);
      const auto at = static_cast<off_t>(begin / page_bytes * sizeof entries[0]);
      const ssize_t got = ::pread(pagemap_.get(), entries.data(), wanted * sizeof entries[0], at);
      if (got < static_cast<ssize_t>(sizeof entries[0])) return;
      const std::size_t count = static_cast<std::size_t>(got) / sizeof entries[0];
      for (std::size_t i = 0; i < count; ++i, begin += page_bytes) {
        const PageState state = state_in(entries[i]);
        add_run(runs, {{begin, begin + page_bytes}, state});
        if (state != PageState::absent) left_bytes -= std::min(left_bytes, page_bytes);
      }
    }
  }

  static PageState state_in(std::uint64_t entry) {
    if ((entry & pagemap_present) != 0) return PageState::resident;
    return (entry & pagemap_swapped) != 0 && (entry & pagemap_guard) == 0 ? PageState::swapped : PageState::absent;
  }

  const int process_, pid_;  // of the process, and of a thread whose files in /proc have its memory
  const process::Fd pagemap_;
  process::Fd memory_{};  // open if pages are shared with a forked process
  // The kernel writes these at once. Linux 6.18 counts pages twice if it may write more than 512.
  std::vector<ScannedRegion> regions_ = std::vector<ScannedRegion>(512);
  bool has_scan_ = true, knows_guards_ = true;
};

}  // namespace

int living_thread(int pid) {
  if (!process::read_stat(pid).zombie()) return pid;
  for (const int tid : process::read_threads(pid)) {
    try {
      if (tid != pid && !process::read_stat(tid).zombie()) return tid;
    } catch (const std::system_error&) {  // this thread has ended meanwhile
    }
  }
  return pid;
}

std::unique_ptr<AddressSpace> open_process(int pid) { return std::make_unique<LiveProcess>(pid); }

}  // namespace cmt::watch::explain
