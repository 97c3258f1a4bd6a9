// Reads an ELF core file: its segments are the mappings, its notes have the files' names and the threads' registers.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "cmtwatch/explain/memory/address_space.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch::explain {
namespace {

/// A file mapped into our memory.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const process::Fd file = files::open_regular_file(path);
    struct stat status;
    if (::fstat(file.get(), &status) != 0) throw std::system_error(errno, std::generic_category(), path);
    bytes_ = static_cast<std::size_t>(status.st_size);
    if (bytes_ == 0) return;
    void* const at = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
    begin_ = static_cast<const std::uint8_t*>(at);
  }
  ~MappedFile() {
    if (begin_ != nullptr) ::munmap(const_cast<std::uint8_t*>(begin_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Null if the range is not within the file.
  const std::uint8_t* at(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? begin_ + offset : nullptr;
  }

 private:
  const std::uint8_t* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
T value_at(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

constexpr std::uint64_t note_aligned(std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; }

class CoreFile final : public AddressSpace {
 public:
  explicit CoreFile(const std::string& path) : path_(path), file_(path) {
    const auto* const head = file_.at(0, sizeof(Elf64_Ehdr));
    if (head == nullptr || std::memcmp(head, ELFMAG, SELFMAG) != 0) fail("it is no ELF file");
    const auto elf = value_at<Elf64_Ehdr>(head);
    if (head[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64) fail("it is not of x86-64");
    if (elf.e_type != ET_CORE) fail("it is no core file");
    const auto* const table = file_.at(elf.e_phoff, std::uint64_t{elf.e_phnum} * sizeof(Elf64_Phdr));
    if (table == nullptr) fail("its table of segments is cut off");
    std::vector<Elf64_Phdr> segments(elf.e_phnum);
    if (!segments.empty()) std::memcpy(segments.data(), table, segments.size() * sizeof(Elf64_Phdr));
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_NOTE) read_notes(segment);
    }
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD) add_mapping(segment);
    }
    std::sort(mappings_.begin(), mappings_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::sort(parts_.begin(), parts_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    if (mappings_.empty()) fail("it has no memory");
    const auto overlap = std::adjacent_find(mappings_.begin(), mappings_.end(),
                                            [](const auto& a, const auto& b) { return a.end > b.begin; });
    if (overlap != mappings_.end()) fail("two segments of memory overlap");
    for (process::Mapping& mapping : mappings_) count_resident(mapping);
  }

  void read_pieces(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces) {
      const std::uint8_t* const from = find_bytes(piece.address, piece.bytes);
      if (from == nullptr) continue;
      std::memcpy(piece.to, from, piece.bytes);
      read_bytes_ += piece.bytes;
    }
  }

  // This machine's file of that path may be another.
  bool read_file(const std::string&, std::uint64_t, std::span<char>) const override { return false; }

  bool read_file(const std::string& path, const FilePieceVisitor& visit) const override {
    try {
      return AddressSpace::read_file(files::open_regular_file(path).get(), visit);
    } catch (const std::exception&) {
      return false;
    }
  }

 protected:
  // gcore writes absent pages as zeros; the kernel leaves holes, which read as zeros.
  bool knows_sharing() const override { return false; }

  int core_pid() const override { return pid_ == 0 && threads_.size() == 1 ? threads_.front().tid : pid_; }

  std::vector<PageRun> runs_of(const process::Mapping& mapping) override {
    static constexpr std::array<std::uint8_t, page_bytes> zeros{};
    std::vector<PageRun> runs;
    auto part = std::upper_bound(parts_.begin(), parts_.end(), mapping.begin,
                                 [](std::uint64_t at, const Part& each) { return at < each.begin; });
    if (part != parts_.begin()) --part;
    std::uint64_t at = mapping.begin;
    for (; part != parts_.end() && part->begin < mapping.end; ++part) {
      const std::uint64_t end = std::min(mapping.end, page_begin(part->begin + part->bytes));
      for (at = std::max(at, page_end(part->begin)); at < end; at += page_bytes) {
        if (std::memcmp(part->in_file + (at - part->begin), zeros.data(), page_bytes) != 0)
          add_run(runs, {{at, at + page_bytes}, PageState::resident});
      }
    }
    return runs;
  }

 private:
  /// Memory that the file has.
  struct Part {
    std::uint64_t begin = 0, bytes = 0;
    const std::uint8_t* in_file = nullptr;
  };
  struct NamedFile {
    std::uint64_t end = 0, offset = 0;
    std::string name;
  };

  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error(path_ + ": " + why); }

  const std::uint8_t* find_bytes(std::uint64_t address, std::uint64_t bytes) const {
    auto after = std::upper_bound(parts_.begin(), parts_.end(), address,
                                  [](std::uint64_t at, const Part& part) { return at < part.begin; });
    if (after == parts_.begin()) return nullptr;
    const Part& part = *--after;
    const std::uint64_t offset = address - part.begin;
    return offset <= part.bytes && bytes <= part.bytes - offset ? part.in_file + offset : nullptr;
  }

  void read_notes(const Elf64_Phdr& segment) {
    const std::uint8_t* const notes = file_.at(segment.p_offset, segment.p_filesz);
    if (notes == nullptr) fail("its notes are cut off");
    for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= segment.p_filesz;) {
      const auto note = value_at<Elf64_Nhdr>(notes + at);
      const std::uint64_t content = at + sizeof note + note_aligned(note.n_namesz);
      if (content > segment.p_filesz || note.n_descsz > segment.p_filesz - content) return;
      if (note.n_type == NT_FILE) read_files(notes + content, note.n_descsz);
      if (note.n_type == NT_PRPSINFO && note.n_descsz >= sizeof(prpsinfo_t))
        pid_ = value_at<prpsinfo_t>(notes + content).pr_pid;
      if (note.n_type == NT_PRSTATUS && note.n_descsz >= sizeof(prstatus_t)) {
        const auto status = value_at<prstatus_t>(notes + content);
        user_regs_struct registers;
        static_assert(sizeof registers <= sizeof status.pr_reg);
        std::memcpy(&registers, &status.pr_reg, sizeof registers);
#ifdef __x86_64__
        threads_.push_back({status.pr_pid, registers.fs_base, registers.rsp});
#else
        threads_.push_back({status.pr_pid, 0, registers.sp});
#endif
      }
      at = content + note_aligned(note.n_descsz);
    }
  }

  // Count, page size, three words for each file, then their names.
  void read_files(const std::uint8_t* note, std::uint64_t bytes) {
    if (bytes < 16) return;
    const auto count = value_at<std::uint64_t>(note), unit = value_at<std::uint64_t>(note + 8);
    if (count > (bytes - 16) / 24) return;
    std::uint64_t name = 16 + count * 24;
    for (std::uint64_t i = 0; i < count && name < bytes; ++i) {
      const std::uint8_t* const entry = note + 16 + i * 24;
      const auto* const text = reinterpret_cast<const char*>(note + name);
      const std::size_t length = ::strnlen(text, bytes - name);
      named_[value_at<std::uint64_t>(entry)] = {value_at<std::uint64_t>(entry + 8),
                                                value_at<std::uint64_t>(entry + 16) * unit, std::string(text, length)};
      name += length + 1;
    }
  }

  void add_mapping(const Elf64_Phdr& segment) {
    const Range range{segment.p_vaddr, segment.p_vaddr + segment.p_memsz};
    if (range.end < range.begin || range.begin % page_bytes != 0 || range.end % page_bytes != 0)
      fail("a segment of memory is not one of whole pages");
    if (range.bytes() > std::uint64_t{1} << 46) fail("a segment of memory is too large");
    if (range.bytes() == 0) return;
    process::Mapping mapping;
    mapping.begin = range.begin;
    mapping.end = range.end;
    mapping.permissions = std::string((segment.p_flags & PF_R) != 0 ? "r" : "-") +
                          ((segment.p_flags & PF_W) != 0 ? "w" : "-") + ((segment.p_flags & PF_X) != 0 ? "xp" : "-p");
    // The kernel and gcore write a name for each segment of a file. A longer range than that is damaged.
    if (const auto file = named_.find(range.begin); file != named_.end() && file->second.end == range.end) {
      mapping.name = file->second.name;
      mapping.offset = file->second.offset;
      if (names_shared_memory(mapping.name)) mapping.permissions.back() = 's';  // which no segment says
    }
    for (const Thread& thread : threads_) {
      const bool is_first = thread.tid == pid_ || threads_.size() == 1;
      if (is_first && range.contains(thread.stack_pointer)) mapping.name = "[stack]";
    }
    mappings_.push_back(std::move(mapping));
    if (segment.p_filesz == 0) return;
    const std::uint8_t* const in_file = file_.at(segment.p_offset, segment.p_filesz);
    if (in_file == nullptr) fail("it is cut off: its segment at " + std::to_string(segment.p_offset) + " is not there");
    parts_.push_back({range.begin, std::min<std::uint64_t>(segment.p_filesz, segment.p_memsz), in_file});
  }

  void count_resident(process::Mapping& mapping) {
    mapping.resident_bytes = resident_bytes({mapping.begin, mapping.end});
    if (is_anonymous_hugetlb(mapping)) {
      mapping.private_hugetlb_bytes = mapping.resident_bytes;
      mapping.name.clear();
    }
    const bool is_written = mapping.permissions[1] == 'w' && !mapping.shared();
    if (mapping.name.empty() || is_written) mapping.anonymous_bytes = mapping.resident_bytes;
  }

  const std::string path_;
  const MappedFile file_;
  int pid_ = 0;                               // the kernel's cores begin with the thread that has crashed
  std::map<std::uint64_t, NamedFile> named_;  // by their begin
  std::vector<Part> parts_;                   // by address
};

}  // namespace

std::unique_ptr<AddressSpace> open_core(const std::string& path) { return std::make_unique<CoreFile>(path); }

}  // namespace cmt::watch::explain
