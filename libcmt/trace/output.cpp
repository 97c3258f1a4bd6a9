#include "libcmt/trace/output.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cmt {

void Output::write(std::string_view bytes) {
  offset_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw std::system_error(errno, std::generic_category(), "writing");
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

}  // namespace cmt
