// Compares stated paths with a template, and checks files before and after they are opened.
#include "toolkit/launch/trace_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "libcmt/format/coding.h"
#include "libcmt/text/utf8.h"
#include "libcmt/trace/files.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"

namespace cmt::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digits_max = 10;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= digits_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_program_name(std::string_view text) { return !text.empty() && text != "." && text != ".."; }

/// Whether a template leads to a path. A program's name may have any length.
bool leads_to(std::string_view pattern, std::string_view path, const std::string& pid) {
  for (; !pattern.empty(); pattern.remove_prefix(1), path.remove_prefix(1)) {
    const char next = pattern[0] == '%' && pattern.size() > 1 ? pattern[1] : '\0';
    if (next == 'p') {
      return path.starts_with(pid) && leads_to(pattern.substr(2), path.substr(pid.size()), pid);
    }
    if (next == 'n') {
      const std::size_t most = std::min(path.find('/'), path.size());
      for (std::size_t length = 1; length <= most; ++length) {
        if (is_program_name(path.substr(0, length)) && leads_to(pattern.substr(2), path.substr(length), pid))
          return true;
      }
      return false;
    }
    if (next == '%') pattern.remove_prefix(1);
    if (path.empty() || path[0] != pattern[0]) return false;
  }
  return path.empty();
}

/// "app.7.cmt" and "7" become "app.cmt", "app.7.pb.gz" "app.pb.gz"; "app.7" becomes "app". Returns nullopt if
/// `is_piece` accepts neither.
template <class IsPiece>
std::optional<std::string> without_piece(const std::string& path, IsPiece is_piece) {
  const std::size_t name = path.rfind('/') + 1, dot = path.ends_with(".pb.gz") ? path.size() - 6 : path.rfind('.');
  if (dot == path.npos || dot <= name) return std::nullopt;
  const std::size_t before = path.rfind('.', dot - 1);
  if (before != path.npos && before > name && is_piece(std::string_view(path).substr(before + 1, dot - before - 1)))
    return path.substr(0, before) + path.substr(dot);
  if (is_piece(std::string_view(path).substr(dot + 1))) return path.substr(0, dot);
  return std::nullopt;
}

/// Whether these are the first bytes of a trace in either form, or there are none yet.
bool begins_as_trace(std::string_view bytes) {
  return bytes.empty() || bytes.starts_with("#cmt") || bytes.starts_with(format::magic);
}

/// Throws std::runtime_error for a file that is not regular, or has several names.
void check_single(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    throw std::runtime_error(path + ": not read, because it is no regular file with a single name");
}

/// Throws std::runtime_error also for another user's file.
void check_own(const std::string& path, const struct stat& status) {
  check_single(path, status);
  if (status.st_uid != geteuid()) throw std::runtime_error(path + ": not read, because it is another user's file");
}

/// A symbolic link is not followed.
struct stat status_of(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) throw std::system_error(errno, std::generic_category(), path);
  return status;
}

struct stat status_of(const process::Fd& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw std::system_error(errno, std::generic_category(), path);
  return status;
}

}  // namespace

bool has_controls(std::string_view path) { return std::any_of(path.begin(), path.end(), text::is_control); }

TracePaths::TracePaths(std::string_view output) : template_(absolute_templates(output.substr(0, output.find(',')))) {}

std::optional<std::string> TracePaths::find(std::string_view stated, int pid) const {
  if (has_controls(stated)) return std::nullopt;
  constexpr int numbers_max = 2;  // app.PID.2.cmt
  std::optional<std::string> path(stated);
  for (int numbers = 0; path && numbers <= numbers_max; ++numbers) {
    if (leads_to(template_, *path, std::to_string(pid))) return std::string(stated);
    path = without_piece(*path, is_number);
  }
  return std::nullopt;
}

std::optional<std::string> TracePaths::find_kept(std::string_view stated, int pid) const {
  std::optional<std::string> path = without_piece(std::string(stated), is_number);
  if (path) path = without_piece(*path, [](std::string_view piece) { return piece == "kept"; });
  return path && find(*path, pid) ? std::optional(std::string(stated)) : std::nullopt;
}

std::string absolute_template(std::string_view path) {
  std::error_code error;
  std::string here;
  if (path.starts_with('/') || path.empty()) return std::string(path);
  for (const char c : fs::current_path(error).string()) here += c == '%' ? "%%" : std::string(1, c);
  return here + (here == "/" || here.empty() ? "" : "/") + std::string(path);
}

std::string absolute_templates(std::string_view list) {
  std::string result;
  while (!list.empty()) {
    const std::string_view path = list.substr(0, list.find(','));
    list.remove_prefix(std::min(path.size() + 1, list.size()));
    if (!path.empty()) result += (result.empty() ? "" : ",") + absolute_template(path);
  }
  return result;
}

TraceOwner owner_of_trace(const std::string& path) {
  try {
    const struct stat status = status_of(path);
    check_single(path, status);
    return status.st_uid == geteuid() ? TraceOwner::us : TraceOwner::other;
  } catch (const std::runtime_error&) {
    return TraceOwner::no_trace;
  }
}

int open_own_trace(const std::string& path) {
  check_own(path, status_of(path));  // the reason is known also where the file cannot be opened
  const process::Fd file = files::open_regular_file(path, {.follows_links = false});
  check_own(path, status_of(file, path));  // it may have been replaced
  std::array<char, format::magic.size()> begin{};
  const ssize_t got = pread(file.get(), begin.data(), begin.size(), 0);
  if (got < 0) throw std::system_error(errno, std::generic_category(), path);
  if (!begins_as_trace({begin.data(), static_cast<std::size_t>(got)}))
    throw std::runtime_error(path + ": not read, because it does not begin as a trace");
  return fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
}

bool is_written(const std::string& path) {
  try {
    const process::Fd file = files::open_regular_file(path, {.follows_links = false});
    check_single(path, status_of(file, path));
    return has_recorder(file.get());
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace cmt::launch
