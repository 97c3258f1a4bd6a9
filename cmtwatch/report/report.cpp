#include "cmtwatch/report/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cmtwatch/report/watch_report.h"

namespace cmt::watch {

Destination::Destination(const std::string& path, int otherwise)
    : path_(path.empty() ? "writing" : path), fd_(otherwise), own_(!path.empty()) {
  if (!own_) return;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
}

Destination::~Destination() {
  if (own_) close(fd_);
}

void Destination::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(fd_, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw std::system_error(errno, std::generic_category(), path_);
    done += static_cast<std::size_t>(put);
  }
}

std::unique_ptr<Report> make_report(const Options& options, Destination& destination) {
  switch (options.form) {
    case Options::Form::json:
      return std::make_unique<JsonReport>(options, destination);
    case Options::Form::csv:
      return std::make_unique<CsvReport>(options, destination);
    case Options::Form::text:
      break;
  }
  return std::make_unique<TextReport>(options, destination);
}

}  // namespace cmt::watch
