// Checks paths of outputs by stat(2) and by creating files for a moment.

#include "toolkit/command/output_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "libcmt/trace/files.h"
#include "toolkit/command/command_line.h"
#include "toolkit/process/proc_file.h"

namespace cmt::command {
namespace {

constexpr int links_max = 40;  // as in the kernel

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::system_error(error, std::generic_category(), path);
}

/// Takes the lock that a recorder of a trace holds. A recorder that comes meanwhile does not get it, and takes another
/// name (preload/program/collector_start.c).
void refuse_if_recorded(const process::Fd& file, const std::string& path) {
  struct flock lock = lock_of(F_WRLCK, recorder_at_work);
  if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES))
    throw std::runtime_error(path + ": another recording is still writing it; give another name");
}

}  // namespace

std::string follow_links(const std::string& path) {
  std::filesystem::path followed = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(followed, error); ++links) {
    if (links == links_max) fail(path, ELOOP);
    const std::filesystem::path target = std::filesystem::read_symlink(followed, error);
    if (error) fail(path, error.value());
    followed = followed.parent_path() / target;  // an absolute target replaces the folder
  }
  return followed;
}

void refuse_input_as_output(const std::string& output, const std::vector<std::string>& inputs) {
  struct stat written {
  }, read{};
  if (output == "-" || stat(output.c_str(), &written) != 0 || !S_ISREG(written.st_mode)) return;
  for (const std::string& input : inputs) {
    if ((input == "-" ? fstat(STDIN_FILENO, &read) : stat(input.c_str(), &read)) != 0) continue;
    if (read.st_dev == written.st_dev && read.st_ino == written.st_ino)
      throw UsageError("would replace " + output + ", which it reads; give another file to write to");
  }
}

void check_regular(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw std::runtime_error(path + ": a trace is a regular file, and this is none");
}

void make_room(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
    if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + ": is not a regular file");
    const process::Fd old(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (old.get() < 0) fail(path, errno);
    refuse_if_recorded(old, path);
    if (unlink(path.c_str()) != 0) fail(path, errno);
  }
  const process::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0 || unlink(path.c_str()) != 0) fail(path, errno);
}

void check_folder(const std::string& path) {
  const std::string folder = (std::filesystem::path(".") / path).parent_path();
  if (folder.find('%') == folder.npos && access(folder.c_str(), W_OK | X_OK) != 0) fail(path, errno);
}

}  // namespace cmt::command
