// Creates, locks and removes the files of an attached process's trace.
#include "cmttrace/attach/recording/trace_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "libcmt/text/utf8.h"
#include "libcmt/trace/files.h"
#include "preload/text.h"
#include "toolkit/command/output_path.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"

namespace cmt::attach {
namespace {

namespace fs = std::filesystem;

constexpr int numbers_max = 100'000;

bool is_fixed(const std::string& path) { return path.find("%n") == path.npos && path.find("%p") == path.npos; }

/// As libcmttrace names a trace after its program: a launcher finds no path with control characters.
std::string without_controls(std::string name) {
  std::replace_if(name.begin(), name.end(), text::is_control, '_');
  return name;
}

std::string fill_template(const std::string& path, const std::string& program, int pid) {
  std::string filled;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char next = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (next == 'p')
      filled += std::to_string(pid), ++i;
    else if (next == 'n')
      filled += without_controls(program), ++i;
    else if (next == '%')
      filled += '%', ++i;
    else
      filled += path[i];
  }
  return filled;
}

/// "app.cmt", "app.2.cmt".
std::string with_number(const std::string& path, int number) {
  if (number == 1) return path;
  const fs::path name(path);
  return (name.parent_path() / (name.stem().string() + "." + std::to_string(number) + name.extension().string()))
      .string();
}

}  // namespace

TraceFiles::TraceFiles(const std::string& templates, const std::string& fifo, const std::string& profile,
                       const std::string& program, int pid) {
  try {
    if (!profile.empty()) {
      profile_ = fs::absolute(fill_template(profile, program, pid));
      if (profile_.size() >= output_path_bytes - 64)
        throw std::system_error(ENAMETOOLONG, std::generic_category(), profile);
      command::check_folder(profile_);
      if (is_fixed(profile)) command::make_room(profile_);
    }
    if (!fifo.empty()) create_fifo(fs::absolute(fill_template(fifo, program, pid)));
    std::istringstream list(templates);
    for (std::string path; std::getline(list, path, ',');) {
      if (!path.empty()) create(path, program, pid);
    }
  } catch (...) {
    this->~TraceFiles();
    throw;
  }
}

TraceFiles::~TraceFiles() {
  if (std::exchange(is_kept_, true)) return;
  for (const std::string& path : paths_) unlink(path.c_str());
  if (has_made_fifo_) unlink(fifo_.c_str());
}

void TraceFiles::create_fifo(const std::string& path) {
  const bool is_made = mkfifo(path.c_str(), 0600) == 0;
  const int error = is_made ? 0 : errno;
  if (error == EEXIST && !fs::is_fifo(path))
    throw std::runtime_error(path + ": commands come through a FIFO, and this is none");
  if (!is_made && error != EEXIST) throw std::system_error(error, std::generic_category(), path);
  has_made_fifo_ = is_made;
  fifo_ = path;
}

void TraceFiles::create(const std::string& path_template, const std::string& program, int pid) {
  std::string path = fs::absolute(fill_template(path_template, program, pid));
  if (path.size() >= output_path_bytes) throw std::system_error(ENAMETOOLONG, std::generic_category(), path);
  if (is_fixed(path_template)) {
    path = command::follow_links(path);
    command::check_regular(path);
    command::make_room(path);
  }
  for (int number = 1; number <= numbers_max; ++number) {
    const std::string name = with_number(path, number);
    process::Fd fd(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.get() < 0 && errno == EEXIST && !is_fixed(path_template)) continue;
    if (fd.get() < 0) throw std::system_error(errno, std::generic_category(), name);
    fchmod(fd.get(), 0600);          // a umask may take the owner's own rights
    lock_against_readers(fd.get());  // the collector inherits the lock
    paths_.push_back(name);
    descriptors_.push_back(std::move(fd));
    return;
  }
  throw std::system_error(EEXIST, std::generic_category(), path);
}

void TraceFiles::describe(Control& control) const {
  control.outputs = static_cast<std::uint32_t>(paths_.size());
  for (std::size_t i = 0; i < paths_.size(); ++i) copy_text(control.paths[i], paths_[i]);
  if (paths_.empty()) copy_text(control.paths[0], profile_);
  copy_text(control.control_path, fifo_);
  copy_text(control.pprof_path, profile_);
  control.made_control = has_made_fifo_;
}

std::string program_of(int pid) {
  // The name by which it was started, as the library has it in children. A server may have put a title there, such as
  // "nginx: master process /usr/sbin/nginx".
  std::string name = process::read_stat(pid).name;
  const std::string words = process::read_file(process::path_of(pid, "cmdline"));
  const std::string_view first = words.c_str();
  constexpr std::size_t name_bytes = 15;
  for (const std::string_view started : {first, first.substr(0, first.find_first_of(" :"))}) {
    const std::string file = fs::path(started).filename().string();
    if (!file.empty() && file.substr(0, name_bytes) == name) return file;
  }
  std::error_code error;
  std::string file(process::file_name_of(fs::read_symlink(process::path_of(pid, "exe"), error).native()));
  if (!error && !file.empty()) return file;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string command_of(int pid) {
  const std::string words = process::read_file(process::path_of(pid, "cmdline"));
  std::string command(command_bytes_max, '\0');
  put_command(command.data(), command.size(), words.data(), std::min(words.size(), command.size()), true);
  command.resize(command.find('\0'));
  return command;
}

}  // namespace cmt::attach
