// Reads a pipe once into a temporary file, and then opens that.
#include "cmtreplay/plan/trace_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "libcmt/trace/files.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"

namespace cmt::replay {

using process::Fd;

TraceSource::TraceSource(const std::string& path) : name_(command::input_name(path)), fd_(command::open_or_wait(path)) {
  begin_ = lseek(fd_.get(), 0, SEEK_CUR);
  if (begin_ >= 0) return;
  Fd file(open_temporary_file());
  begin_ = 0;
  Output(file.get(), "writing a temporary file").copy_from(fd_.get(), name_);
  fd_ = std::move(file);
}

int TraceSource::open() {
  const int fd = lseek(fd_.get(), begin_, SEEK_SET) < 0 ? -1 : fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), name_);
  return fd;
}

PreparedTrace prepare(TraceSource& source, const TraceOptions& options, const PreparedTrace::Progress& progress) {
  const auto open = [&source](PreparedTrace::Stacks stacks) {
    return command::open_trace(source.open(), source.name(),
                               {.addresses = false,
                                .usable = false,
                                .stacks = stacks == PreparedTrace::Stacks::yes,
                                .on_defect = [&source](const Defect& defect) { source.note_defect(defect); }});
  };
  try {
    return PreparedTrace(open, options, progress);
  } catch (const std::length_error& error) {  // too many threads or blocks
    throw std::runtime_error(source.name() + ": " + error.what());
  }
}

}  // namespace cmt::replay
