/// Mappings of a process, from /proc/PID/smaps. The process runs on while the kernel writes that text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cmt::process {

/// One mapping of a process from /proc/PID/smaps. Sizes are bytes; a figure that the kernel does not have is 0.
struct Mapping {
  std::uint64_t begin = 0;   ///< first address
  std::uint64_t end = 0;     ///< one past the last
  std::string permissions;   ///< "rw-p"
  std::uint64_t offset = 0;  ///< in the file
  std::string name;          ///< a path, "[heap]", "/memfd:NAME (deleted)"; empty for an anonymous mapping
  std::uint64_t resident_bytes = 0;
  std::uint64_t proportional_bytes = 0;  ///< Pss: each page divided by the number of processes that map it
  std::uint64_t private_bytes = 0;       ///< clean and dirty, mapped by this process alone
  std::uint64_t dirty_bytes = 0;         ///< written to since they were read, or never of a file
  std::uint64_t anonymous_bytes = 0;     ///< pages of no file: copies of written file pages among them
  std::uint64_t referenced_bytes = 0;    ///< touched since clear_refs was written last
  std::uint64_t lazy_free_bytes = 0;     ///< given back with MADV_FREE, still resident
  std::uint64_t huge_page_bytes = 0;     ///< in transparent huge pages: anonymous, shared memory and files
  std::uint64_t swapped_bytes = 0;
  std::uint64_t private_hugetlb_bytes = 0, shared_hugetlb_bytes = 0;  ///< in reserved huge pages, not resident_bytes

  std::uint64_t hugetlb_bytes() const { return private_hugetlb_bytes + shared_hugetlb_bytes; }
  bool shared() const { return permissions.size() == 4 && permissions[3] == 's'; }
};

/// The mappings in the text of an smaps file. smaps_rollup has one, "[rollup]", with the sums of all mappings. Its
/// range goes from the first to the last of them, and is no memory's. Throws FormatError, with `name` and the line, for
/// any other text. A mapping that grew while the kernel wrote the text occurs twice. It is taken once, as it occurs
/// last.
std::vector<Mapping> parse_smaps(std::string_view text, const std::string& name = "smaps");

/// Parses a text that comes in pieces: a process can have 65,530 mappings, which smaps describes in 50 MB.
///
///     SmapsParser parser([&](const Mapping& mapping) { use(mapping); });
///     while (read more) parser.feed(piece);
///     parser.end();
class SmapsParser {
 public:
  /// `take` is called with each mapping once all of it is known.
  explicit SmapsParser(std::function<void(const Mapping&)> take, std::string name = "smaps")
      : take_(std::move(take)), name_(std::move(name)) {}

  /// A piece; its last line may go on in the next. Throws FormatError.
  void feed(std::string_view piece);

  /// After the last piece. Throws FormatError.
  void end();

 private:
  struct Figure {
    std::string key;  // with its colon
    std::vector<std::uint64_t Mapping::*> fields;
  };

  void take();
  void take_before(const Mapping& next);
  void parse_line(std::string_view line);
  void parse_figure(std::string_view line);
  const Figure& find_figure(std::string_view line);
  [[noreturn]] void fail(const char* expected) const;

  std::function<void(const Mapping&)> take_;
  std::string name_;
  std::string begun_;  ///< the beginning of a line whose rest is in the next piece
  Mapping mapping_;
  std::uint64_t taken_end_ = 0;  ///< of the last one that was taken
  std::vector<Figure> figures_;  ///< in the order of their lines
  std::size_t next_figure_ = 0;
  std::uint64_t mappings_ = 0, lines_ = 0;
};

/// The mappings of a living process. The kernel walks its page tables for them: 65 ms per GB of small pages, and 22 us
/// per mapping.
std::vector<Mapping> read_smaps(int pid, const std::string& root = "/proc");

/// Returns the name without folders of a mapped file, also of one that is gone: "libc.so.6" of "/lib/libc.so.6
/// (deleted)".
std::string_view file_name_of(std::string_view mapping_name);

/// The name of each mapping that `cmttrace --attach` shares with a process. One of them contains libcmttrace.so.
inline constexpr std::string_view attached_memory = "/memfd:cmttrace (deleted)";
/// Whether this is the name of libcmttrace.so's file, or of such memory. To be asked of mappings of code.
bool is_tracer(std::string_view mapping_name);

}  // namespace cmt::process
