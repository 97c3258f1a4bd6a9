// Copies a pipe to a temporary file, and reads sections at any offset.

#include "trace2cmt/inspect/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include "libcmt/format/sections.h"
#include "libcmt/trace/files.h"
#include "toolkit/command/open_trace.h"

namespace cmt::trace2cmt {

using cmt::format::SectionStart;

TraceFile::TraceFile(const std::string& path, From from)
    : from_(std::move(from)), fd_(cmt::command::open_or_wait(path)), input_(std::make_unique<cmt::Input>(fd_, path)) {
  if (input_->can_seek()) return;
  const std::unique_ptr<cmt::Input> pipe = std::move(input_);
  const int pipe_fd = std::exchange(fd_, cmt::open_temporary_file());
  cmt::Output(fd_, "writing a temporary file").copy_from(pipe_fd, pipe->name());
  lseek(fd_, 0, SEEK_SET);
  input_ = std::make_unique<cmt::Input>(fd_, pipe->name());
  assert(input_->can_seek());
}

std::string TraceFile::at(std::uint64_t offset, std::uint64_t count) const {
  if (offset >= size()) return {};
  return input_->at(offset, std::min(count, size() - offset));
}

cmt::Reader TraceFile::reader(cmt::ReadOptions options) const {
  const int fd = open(("/proc/self/fd/" + std::to_string(fd_)).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), name());
  return open_log(fd, name(), from_, std::move(options), cmt::command::Samples::accepted);
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

}  // namespace cmt::trace2cmt
