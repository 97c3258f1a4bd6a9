/// The memory that `cmtwatch explain` looks at: a process's, or a core file's. The hard thing: a look must change
/// nothing in the process. Only resident pages are read, so none is faulted in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "toolkit/process/smaps.h"

namespace cmt::watch::explain {

/// Pages are those of x86-64.
inline constexpr std::uint64_t page_bytes = 4096, huge_page_bytes = 2 << 20;
constexpr std::uint64_t page_begin(std::uint64_t address) { return address & ~(page_bytes - 1); }
constexpr std::uint64_t page_end(std::uint64_t address) { return page_begin(address + page_bytes - 1); }

/// Whether a mapping is memory of no file in reserved huge pages, such as malloc's with glibc.malloc.hugetlb=2.
inline bool is_anonymous_hugetlb(const process::Mapping& mapping) {
  return !mapping.shared() && mapping.name.starts_with("/anon_hugepage");
}

/// A page of the kernel's that holds only zeros is absent: the resident set does not count it.
enum class PageState : std::uint8_t { absent, resident, swapped };

/// A thread of the process.
struct Thread {
  int tid = 0;
  std::uint64_t control_block = 0;  ///< of libc (its thread pointer); 0: not found
  std::uint64_t stack_pointer = 0;  ///< 0: not known
};

/// A range of addresses.
struct Range {
  std::uint64_t begin = 0, end = 0;

  std::uint64_t bytes() const { return end - begin; }
  bool contains(std::uint64_t address) const { return begin <= address && address < end; }
  bool operator==(const Range&) const = default;
};

/// Pages in a row that have one state. A mapping is described by runs, since some programs map terabytes and use little
/// of them.
struct PageRun {
  Range range{};
  PageState state = PageState::absent;
};

/// Adds pages of the next addresses to runs.
void add_run(std::vector<PageRun>& runs, const PageRun& next);

/// Whether the kernel gives this name to memory that processes share, and that no file has.
bool names_shared_memory(std::string_view name);

/// The mappings, threads and pages of a process at about one moment.
class AddressSpace {
 public:
  AddressSpace();
  virtual ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// By address. Reserved huge pages (hugetlb) count as resident; anonymous ones have no name. A core file has no
  /// figures of memory but resident_bytes, anonymous_bytes and private_hugetlb_bytes.
  const std::vector<process::Mapping>& mappings() const { return mappings_; }
  /// The mapping at an address, or null.
  const process::Mapping* find(std::uint64_t address) const;
  const std::vector<Thread>& threads() const { return threads_; }

  /// Whether the mappings have private_bytes and dirty_bytes.
  virtual bool knows_sharing() const { return true; }

  /// Looks again where the threads are: they may have been stopped meanwhile.
  virtual void find_threads() {}

  /// The state of the page at an address; absent outside of all mappings.
  PageState page(std::uint64_t address);
  /// The first resident page, or the first swapped one, that begins in a range; the range's end if there is none.
  std::uint64_t next_resident(Range range) { return next(range, PageState::resident); }
  std::uint64_t next_swapped(Range range) { return next(range, PageState::swapped); }
  /// The bytes of the resident pages, and of the swapped ones, that lie wholly within a range.
  std::uint64_t resident_bytes(Range range);
  std::uint64_t swapped_bytes(Range range);

  /// Reads some bytes. Returns false unless all are resident, and can be read. The pages are kept: a later read of the
  /// same page may return what it held before.
  bool read(std::uint64_t address, void* to, std::size_t bytes);
  template <class T>
  std::optional<T> read(std::uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    return read(address, &value, sizeof value) ? std::optional<T>(value) : std::nullopt;
  }

  /// Reads whole pages. Pages that are not resident become zeros. Returns false if the memory is gone.
  bool read_pages(Range range, std::uint8_t* to);

  /// A place to read `bytes` bytes from.
  struct Piece {
    std::uint64_t address = 0;
    void* to = nullptr;
    std::size_t bytes = 0;
  };
  /// Reads pieces of resident memory, many with one system call. A piece that cannot be read stays as it is.
  virtual void read_pieces(std::span<const Piece> pieces) = 0;

  /// Takes a piece of a file. Returns whether to go on.
  using FilePieceVisitor = std::function<bool(std::string_view)>;
  /// Reads a file that the process has mapped in pieces. Each begins with the last 256 bytes of the one before, so that
  /// short text is whole in one of them. Returns false if it cannot be read any more.
  virtual bool read_file(const std::string& path, const FilePieceVisitor& visit) const = 0;

  /// The number of the process of a core file; 0: not known, or no core file.
  virtual int core_pid() const { return 0; }

  /// The transparent huge pages of a mapping; nullopt if the kernel does not say.
  virtual std::optional<std::vector<Range>> huge_pages(const process::Mapping&) { return std::nullopt; }

  /// Reads some bytes of a file that the process has mapped. Returns false if it cannot be read, or is shorter.
  virtual bool read_file(const std::string& path, std::uint64_t offset, std::span<char> to) const = 0;

  /// Bytes that were read.
  std::uint64_t read_bytes() const { return read_bytes_; }

 protected:
  static bool read_file(int fd, const FilePieceVisitor& visit);

  /// The resident and the swapped pages of a mapping, by address.
  virtual std::vector<PageRun> runs_of(const process::Mapping& mapping) = 0;

  std::vector<process::Mapping> mappings_;
  std::vector<Thread> threads_;
  std::uint64_t read_bytes_ = 0;

 private:
  class KeptPages;

  struct Runs {
    bool is_known = false;
    std::vector<PageRun> runs;
    std::size_t last_found = 0;
  };

  Runs& runs(const process::Mapping& mapping);
  /// The first run that ends after an address.
  const PageRun* run_after(std::uint64_t address, const process::Mapping& mapping);
  /// Calls use(part) for each part of a range whose pages are resident or swapped, until it returns false.
  template <class Use>
  void each_run(Range range, Use use);
  std::uint64_t next(Range range, PageState state);
  std::uint64_t count(Range range, PageState state);
  const std::uint8_t* keep(std::uint64_t page);

  std::vector<Runs> runs_;           // by the number of the mapping
  std::unique_ptr<KeptPages> kept_;  // by the lowest bits of the page's number
  mutable std::size_t last_found_ = 0;
};

/// The process, or another thread of it if its first thread has ended: then the kernel shows the memory only there.
/// Throws std::system_error if the process is gone.
int living_thread(int pid);

/// The memory of a process that runs. Throws std::runtime_error, with the reason and a remedy, if it may not be read.
std::unique_ptr<AddressSpace> open_process(int pid);

/// The memory in a core file of the kernel's or of gcore(1). A page of zeros counts as absent. Throws
/// std::runtime_error, with the file's name, if it is no core file of x86-64, or is cut off.
std::unique_ptr<AddressSpace> open_core(const std::string& path);

}  // namespace cmt::watch::explain
