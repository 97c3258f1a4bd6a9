// Writes to files and streams, draws columns on a terminal, and formats times and sizes.
#include "cmtwatch/report/report_output.h"

#include <array>
#include <ctime>
#include <utility>

#include "libcmt/text/utf8.h"
#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::watch {
namespace {

/// More columns than terminals have.
constexpr std::size_t columns_kept = 1024;

}  // namespace

Destination::Destination(const std::string& path, int stream, Names names)
    : path_(path.empty() ? "writing" : path), fd_(stream) {
  if (path.empty()) return;
  if (names == Names::whole)
    fd_ = whole_.emplace(path).fd();
  else
    fd_ = (file_ = process::create_file(path)).get();
}

void Destination::commit() {
  if (whole_) whole_->commit();
}

void Destination::write(const std::string& text) { process::write_all(fd_, text::to_lines(text), path_); }

LiveColumns::LiveColumns(int fd, terminal::Beside beside, std::function<Text()> text)
    : beside_(beside), text_(std::move(text)), view_(terminal::make_terminal_view(fd, beside)) {}

void LiveColumns::add(std::uint64_t bytes) {
  if (recent_.size() == columns_kept) recent_.erase(recent_.begin());
  recent_.push_back(bytes);
  draw();
}

void LiveColumns::resized() {
  if (recent_.empty()) return;
  view_->resized();
  draw();
}

void LiveColumns::draw() {
  if (!view_->due()) return;
  const auto [head, below] = text_();
  const std::size_t width = view_->size().columns - 1;
  if (beside_ == terminal::Beside::command) {
    const std::size_t left = width > head.size() + 2 ? width - head.size() - 2 : 0;
    return view_->show({head + "  " + terminal::sparkline(recent_, left)});
  }
  std::vector<std::string> lines{head, terminal::sparkline(recent_, width)};
  lines.insert(lines.end(), below.begin(), below.end());
  view_->show(lines);
}

std::string amount(std::uint64_t bytes, bool plain) {
  return plain ? std::to_string(bytes) : output::bytes_text(bytes);
}

std::string wall_text(std::int64_t wall_ns) {
  const std::int64_t milliseconds = wall_ns / 1'000'000;
  const std::time_t seconds = milliseconds / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.", &local);
  const std::string digits = std::to_string(1000 + milliseconds % 1000);
  return std::string(text.data(), length) + digits.substr(1);
}

std::optional<std::int64_t> parse_wall(const std::string& text) {
  constexpr std::int64_t second = 1'000'000'000;
  std::tm local{};
  const char* const rest =
      strptime(text.c_str(), text.find('T') == text.npos ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &local);
  if (!rest) return std::nullopt;
  local.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&local);
  if (seconds < 0 || seconds > INT64_MAX / second - 1) return std::nullopt;
  const std::int64_t begin = seconds * second;
  if (*rest == '\0') return begin + second - 1;
  const std::string_view fraction(rest);
  const bool digits = fraction.size() > 1 && fraction.size() <= 10 && fraction[0] == '.' &&
                      fraction.find_first_not_of("0123456789", 1) == fraction.npos;
  if (!digits) return std::nullopt;
  std::int64_t unit = second, count = 0;
  for (const char digit : fraction.substr(1)) {
    unit /= 10;
    count = count * 10 + (digit - '0');
  }
  return begin + (count + 1) * unit - 1;
}

picture::Panel bytes_over_time(const std::string& title, const std::string& y_title) {
  return {.title = title,
          .x = {.title = "time", .unit = picture::Unit::ns},
          .y = {.title = y_title, .unit = picture::Unit::bytes}};
}

void write_picture(picture::PictureFile& file, const picture::Picture& picture, const std::string& numbers,
                   const std::string& name) {
  file.write(picture, numbers);
  if (const auto remark = file.remark(); !remark.empty()) command::complain(name, remark);
}

}  // namespace cmt::watch
