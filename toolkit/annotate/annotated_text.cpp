#include "toolkit/annotate/annotated_text.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cmt::heap {
namespace {

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw std::system_error(errno, std::generic_category(), "writing");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

AnnotatedText::AnnotatedText(int fd)
    : fd_(fd), buffer_(std::make_unique_for_overwrite<char[]>(capacity)), at_(buffer_.get()) {}

void AnnotatedText::flush() {
  const std::string_view collected(buffer_.get(), static_cast<std::size_t>(at_ - buffer_.get()));
  at_ = buffer_.get();
  write_all(fd_, collected);
}

/// A line that is longer than the buffer. It is empty at this moment.
void AnnotatedText::write_through(std::string_view line) { write_all(fd_, line); }

}  // namespace cmt::heap
