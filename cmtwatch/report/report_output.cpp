#include "cmtwatch/report/report_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "toolkit/terminal/terminal.h"

namespace cmt::watch {
namespace {

/// More columns than terminals have.
constexpr std::size_t columns_kept = 1024;

}  // namespace

Destination::Destination(const std::string& path, int stream)
    : path_(path.empty() ? "writing" : path), fd_(stream), own_(!path.empty()) {
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

LiveColumns::LiveColumns(int fd, output::Beside beside)
    : beside_(beside), view_(output::make_terminal_view(fd, beside)) {}

void LiveColumns::add(std::uint64_t bytes) {
  if (recent_.size() == columns_kept) recent_.erase(recent_.begin());
  recent_.push_back(bytes);
}

void LiveColumns::show(const std::string& text, const std::vector<std::string>& below) {
  const std::size_t width = view_->size().columns - 1;
  if (beside_ == output::Beside::command) {
    const std::size_t left = width > text.size() + 2 ? width - text.size() - 2 : 0;
    return view_->show({text + "  " + output::sparkline(recent_, left)});
  }
  std::vector<std::string> lines{text, output::sparkline(recent_, width)};
  lines.insert(lines.end(), below.begin(), below.end());
  view_->show(lines);
}

void say(const std::string& name, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), text.c_str());
}

void write_picture(output::PictureFile& file, const output::Picture& picture, const std::string& numbers,
                   const std::string& name) {
  file.write(picture, numbers);
  if (const auto remark = file.remark(); !remark.empty()) say(name, std::string(remark));
}

}  // namespace cmt::watch
