// Reads files of /proc in pieces, since they have no size.

#include "toolkit/process/proc_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace cmt::process {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path) { throw std::system_error(errno, std::generic_category(), path); }

Fd open_file(const std::string& path, int flags) {
  Fd file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (file.get() < 0) fail(path);
  return file;
}

void read_pieces(const Fd& file, const std::string& path, std::string& buffer,
                 const std::function<void(std::string_view)>& take) {
  constexpr std::size_t piece_bytes = 64 * 1024;
  if (buffer.size() < piece_bytes) buffer.resize(piece_bytes);
  for (;;) {
    const ssize_t got = read(file.get(), buffer.data(), piece_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path);
    if (got == 0) return;
    take(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
  }
}

std::optional<std::uint64_t> first_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto digits = text.find_first_of(base == 16 ? "0123456789abcdef" : "0123456789");
  if (digits == text.npos) return std::nullopt;
  std::from_chars(text.data() + digits, text.data() + text.size(), value, base);
  return value;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::string text, buffer;
  read_pieces(open_file(path, O_RDONLY), path, buffer, [&](std::string_view piece) { text += piece; });
  return text;
}

Fd create_file(const std::string& path) { return path.empty() ? Fd() : open_file(path, O_WRONLY | O_CREAT | O_TRUNC); }

void write_all(int fd, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(name);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void write_file(const std::string& path, const std::string& text) {
  write_all(open_file(path, O_WRONLY).get(), text, path);
}

std::string path_of(int pid, const std::string& name, const std::string& root) {
  return root + "/" + std::to_string(pid) + "/" + name;
}

std::string_view read_again(int fd, std::string& buffer) {
  std::size_t used = 0;
  for (;;) {
    if (buffer.size() - used < 4096) buffer.resize(buffer.size() + 16 * 1024);
    const ssize_t got = pread(fd, buffer.data() + used, buffer.size() - used, static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("reading /proc");
    if (got == 0) return std::string_view(buffer.data(), used);
    used += static_cast<std::size_t>(got);
    assert(used <= buffer.size());
  }
}

ProcessFolder::ProcessFolder(int pid, const std::string& root)
    : path_(root + "/" + std::to_string(pid)), fd_(open_file(path_, O_RDONLY | O_DIRECTORY)) {}

int ProcessFolder::open(const char* name) const {
  const int fd = openat(fd_.get(), name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path_ + "/" + name);
  return fd;
}

std::string_view ProcessFolder::read(const char* name, std::string& buffer) const {
  const Fd file(open(name));
  return read_again(file.get(), buffer);
}

void ProcessFolder::read(const char* name, std::string& buffer,
                         const std::function<void(std::string_view)>& take) const {
  read_pieces(Fd(open(name)), path_ + "/" + name, buffer, take);
}

std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int number = 0;
    const auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem == std::errc() && rest == name.data() + name.size()) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::uint64_t> find_figure(std::string_view text, std::string_view key, int base) {
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (!begins_line || text.substr(at + key.size(), 1) != ":") continue;
    const std::string_view rest = text.substr(at + key.size());
    return first_number(rest.substr(0, rest.find('\n')), base);
  }
  return std::nullopt;
}

}  // namespace cmt::process
