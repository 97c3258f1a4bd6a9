// A mapping in smaps is a line of its own and some twenty lines of figures:
//
//   55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]
//   Size:                132 kB
//   Rss:                  12 kB
//   ...
//   VmFlags: rd wr mr mw me ac
//
// A figure's line begins with a capital letter, a mapping's with a lower-case hexadecimal digit. Kernels add figures as
// they grow, so unknown ones are skipped. One kernel has them in the same order for each mapping. So the key of a line
// is looked up in the first mapping, and only compared in the others.
//
// The process runs on between two reads. The kernel then continues with the first mapping that ends after the last one
// that it has written. If that last mapping has grown meanwhile, the kernel writes it again, whole.
#include "toolkit/process/smaps.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <utility>

#include "cmt/error.h"
#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t Mapping::*>, 15> known_figures{{
    {"Rss", &Mapping::resident_bytes},
    {"Pss", &Mapping::proportional_bytes},
    {"Private_Clean", &Mapping::private_bytes},
    {"Private_Dirty", &Mapping::private_bytes},
    {"Shared_Dirty", &Mapping::dirty_bytes},
    {"Private_Dirty", &Mapping::dirty_bytes},
    {"Anonymous", &Mapping::anonymous_bytes},
    {"Referenced", &Mapping::referenced_bytes},
    {"LazyFree", &Mapping::lazy_free_bytes},
    {"AnonHugePages", &Mapping::huge_page_bytes},
    {"ShmemPmdMapped", &Mapping::huge_page_bytes},
    {"FilePmdMapped", &Mapping::huge_page_bytes},
    {"Shared_Hugetlb", &Mapping::shared_hugetlb_bytes},
    {"Private_Hugetlb", &Mapping::private_hugetlb_bytes},
    {"Swap", &Mapping::swapped_bytes},
}};

bool is_figure(std::string_view line) { return !line.empty() && line[0] >= 'A' && line[0] <= 'Z'; }

bool parse_hex(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

/// Returns false if the line does not begin a mapping.
bool parse_mapping(std::string_view line, Mapping& mapping) {
  const std::string_view range = take_word(line);
  const auto dash = range.find('-');
  if (dash == range.npos || !parse_hex(range.substr(0, dash), mapping.begin) ||
      !parse_hex(range.substr(dash + 1), mapping.end) || mapping.end <= mapping.begin)
    return false;
  mapping.permissions = take_word(line);
  parse_hex(take_word(line), mapping.offset);
  for (int skipped = 0; skipped < 2; ++skipped) take_word(line);  // device, inode
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  mapping.name = line;
  return true;
}

/// Leaves the part of a mapping from `begin` to `end`.
void cut(Mapping& mapping, std::uint64_t begin, std::uint64_t end) {
  assert(mapping.begin <= begin && begin < end && end <= mapping.end);
  mapping.begin = begin;
  mapping.end = end;
  for (const auto& [_, field] : known_figures) mapping.*field = std::min(mapping.*field, end - begin);
}

}  // namespace

/// The line's key, and what it is added to.
const SmapsParser::Figure& SmapsParser::find_figure(std::string_view line) {
  assert(next_figure_ <= figures_.size());
  if (next_figure_ < figures_.size() && line.starts_with(figures_[next_figure_].key)) return figures_[next_figure_++];
  const auto colon = line.find(':');
  if (colon == line.npos) fail("expected a number");
  Figure figure{.key = std::string(line.substr(0, colon + 1)), .fields = {}};
  for (const auto& [key, field] : known_figures) {
    if (key == line.substr(0, colon)) figure.fields.push_back(field);
  }
  figures_.resize(next_figure_++);
  return figures_.emplace_back(std::move(figure));
}

void SmapsParser::parse_figure(std::string_view line) {
  const Figure& figure = find_figure(line);
  if (figure.fields.empty()) return;
  const char* at = line.data() + figure.key.size();
  const char* const end = line.data() + line.size();
  while (at != end && *at == ' ') ++at;
  std::uint64_t kilobytes = 0;
  if (std::from_chars(at, end, kilobytes).ec != std::errc()) fail("expected a number");
  for (std::uint64_t Mapping::*const field : figure.fields) mapping_.*field += kilobytes * 1024;
}

void SmapsParser::feed(std::string_view piece) {
  for (auto end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
    const std::string_view line = piece.substr(0, end);
    piece.remove_prefix(end + 1);
    if (begun_.empty()) {
      parse_line(line);
      continue;
    }
    parse_line(begun_.append(line));
    begun_.clear();
  }
  begun_ += piece;
}

void SmapsParser::end() {
  if (!begun_.empty()) parse_line(begun_);
  if (mappings_ != 0) take();
}

void SmapsParser::take() {
  assert(mapping_.begin < mapping_.end);
  if (mapping_.begin < taken_end_ && taken_end_ < mapping_.end) cut(mapping_, taken_end_, mapping_.end);
  taken_end_ = mapping_.end;
  take_(mapping_);
}

/// Takes the mapping before `next`, without the memory that both describe.
void SmapsParser::take_before(const Mapping& next) {
  const bool is_same_memory = mapping_.begin < next.end && next.begin < mapping_.end;
  if (is_same_memory && next.begin <= mapping_.begin) return;
  if (is_same_memory) cut(mapping_, mapping_.begin, next.begin);
  take();
}

void SmapsParser::parse_line(std::string_view line) {
  ++lines_;
  if (is_figure(line) && mappings_ != 0) return parse_figure(line);
  Mapping next;
  const bool is_mapping = !is_figure(line) && parse_mapping(line, next);
  if (mappings_ != 0) take_before(next);
  if (!is_mapping) fail("expected a mapping");
  mapping_ = std::move(next);
  ++mappings_;
  next_figure_ = 0;
}

void SmapsParser::fail(const char* expected) const {
  throw FormatError(name_ + ":" + std::to_string(lines_), expected);
}

std::vector<Mapping> parse_smaps(std::string_view text, const std::string& name) {
  std::vector<Mapping> mappings;
  SmapsParser parser([&](const Mapping& mapping) { mappings.push_back(mapping); }, name);
  parser.feed(text);
  parser.end();
  return mappings;
}

// The text is not kept: that of 60,000 mappings has 50 MB.
std::vector<Mapping> read_smaps(int pid, const std::string& root) {
  std::vector<Mapping> mappings;
  SmapsParser parser([&](const Mapping& mapping) { mappings.push_back(mapping); });
  std::string buffer;
  ProcessFolder(pid, root).read("smaps", buffer, [&](std::string_view piece) { parser.feed(piece); });
  parser.end();
  return mappings;
}

std::string_view file_name_of(std::string_view mapping_name) {
  constexpr std::string_view gone = " (deleted)";
  if (mapping_name.ends_with(gone)) mapping_name.remove_suffix(gone.size());
  return mapping_name.substr(mapping_name.rfind('/') + 1);
}

bool is_tracer(std::string_view mapping_name) {
  return mapping_name == attached_memory || file_name_of(mapping_name) == "libcmttrace.so";
}

}  // namespace cmt::process
