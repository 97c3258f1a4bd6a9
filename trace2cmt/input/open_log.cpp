// Opens inputs with the options of a command line.

#include "trace2cmt/input/open_log.h"

#include "libcmt/trace/source.h"

namespace cmt::trace2cmt {

cmt::Reader open_log(const std::string& path, const From& from, cmt::ReadOptions options,
                     cmt::command::Samples samples) {
  return open_log(cmt::command::open_or_wait(path), path, from, std::move(options), samples);
}

cmt::Reader open_log(int fd, const std::string& name, const From& from, cmt::ReadOptions options,
                     cmt::command::Samples samples) {
  From offering = from;
  offering.offers_pid = true;
  return cmt::command::open_trace(fd, name, std::move(options), offering, samples);
}

}  // namespace cmt::trace2cmt
