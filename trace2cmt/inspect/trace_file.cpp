#include "trace2cmt/inspect/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "libcmt/format/sections.h"
#include "libcmt/trace/files.h"

namespace trace2cmt {
namespace {

using cmt::format::SectionStart;

[[noreturn]] void fail_at(const std::string& name) { throw std::system_error(errno, std::generic_category(), name); }

bool can_seek(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && lseek(fd, 0, SEEK_CUR) == 0;
}

}  // namespace

TraceFile::TraceFile(const std::string& path, From from)
    : name_(path == "-" ? "standard input" : path), from_(std::move(from)), fd_(cmt::open_input(path)) {
  if (!can_seek(fd_)) {
    const int pipe = std::exchange(fd_, cmt::open_temporary_file());
    cmt::Output(fd_, "writing a temporary file").copy_from(pipe, name_);
    close(pipe);
  }
  struct stat status;
  if (fstat(fd_, &status) != 0) fail_at(name_);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

TraceFile::~TraceFile() { close(fd_); }

bool TraceFile::is_cmt() const { return at(0, cmt::format::magic.size()) == cmt::format::magic; }

std::string TraceFile::at(std::uint64_t offset, std::uint64_t count) const {
  if (offset >= size_) return {};
  return cmt::bytes_at(fd_, name_, offset, std::min(count, size_ - offset));
}

std::string TraceFile::place(std::uint64_t offset) const { return cmt::place_in(name_, offset); }

cmt::Reader TraceFile::reader(cmt::ReadOptions options) const {
  const int fd = open(("/proc/self/fd/" + std::to_string(fd_)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_at(name_);
  return open_log(fd, name_, from_, std::move(options));
}

std::optional<Section> section_at(const TraceFile& file, std::uint64_t offset) {
  constexpr std::uint64_t usual_size = 512;
  std::string bytes = file.at(offset, usual_size);
  if (bytes.size() < SectionStart::size) return std::nullopt;
  return at_offset(offset, [&]() -> std::optional<Section> {
    Section section{.offset = offset, .start = cmt::format::take_section_start(bytes), .header = {}};
    const std::uint64_t size = section.start.total() - section.start.body_size;
    if (size > bytes.size()) bytes = file.at(offset, size);
    if (bytes.size() < size) return std::nullopt;
    section.header = cmt::format::take_section_header(bytes, section.start);
    if (section.end() > file.size()) return std::nullopt;
    return section;
  });
}

std::optional<IndexedBlocks> indexed_blocks(const TraceFile& file) {
  using namespace cmt::format;
  if (file.size() < tail_size || !is_tail(file.at(file.size() - tail_size, tail_size))) return std::nullopt;
  const auto tail = section_at(file, file.size() - tail_size);
  const auto index = section_at(file, take_fields(*tail, take_tail).index_offset);
  if (!index || !index->is(SectionType::index)) return std::nullopt;
  IndexedBlocks blocks{.offsets = {}, .index_offset = index->offset};
  for (const IndexEntry& entry : take_fields(*index, take_index)) blocks.offsets.push_back(entry.offset);
  return blocks;
}

}  // namespace trace2cmt
