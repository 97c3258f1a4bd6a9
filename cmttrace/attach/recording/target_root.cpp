// Names functions in a finished trace by running trace2cmt --symbolise with the target's root folder.
#include "cmttrace/attach/recording/target_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "cmt/reader.h"
#include "toolkit/files/output_file.h"
#include "toolkit/launch/spawn.h"
#include "toolkit/launch/tracer.h"

namespace cmt::attach {
namespace {

process::Fd open_of_process(int pid, const char* name, int flags) {
  const std::string path = process::path_of(pid, name);
  process::Fd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (fd.get() < 0) throw std::system_error(errno, std::generic_category(), path);
  return fd;
}

bool is_same(int fd, const char* ours) {
  struct stat theirs {
  }, own{};
  return fstat(fd, &theirs) == 0 && stat(ours, &own) == 0 && theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

/// Gives the named trace the mode of the trace that it will replace.
void keep_mode_of(const std::string& trace, const std::string& named) {
  struct stat status {};
  const process::Fd file(open(named.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() >= 0 && stat(trace.c_str(), &status) == 0) files::keep_mode(file.get(), status);
}

/// Throws std::exception, and leaves no file but the trace.
void name_functions_of(const TargetRoot& root, const std::string& trace) {
  const std::string named = trace + ".named";
  std::vector<std::string> words{launch::tool_path("trace2cmt"), "--symbolise", "--root=" + root.path(),
                                 "--output=" + named, trace};
  if (!trace.ends_with(".cmt")) words.insert(words.begin() + 1, "--to=text");
  const process::Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  launch::ChildProcess child({.words = words, .output_fd = nothing.get(), .error_fd = nothing.get()});
  const launch::Ended ended = child.wait();
  keep_mode_of(trace, named);
  if (ended.signal == 0 && ended.status == 0 && std::rename(named.c_str(), trace.c_str()) == 0) return;
  const int error = errno;
  unlink(named.c_str());
  if (ended.signal != 0 || ended.status != 0) throw std::runtime_error("trace2cmt: " + launch::ending_text(ended));
  throw std::system_error(error, std::generic_category(), trace);
}

}  // namespace

TargetRoot::TargetRoot(int pid)
    : root_(open_of_process(pid, "root", O_PATH | O_DIRECTORY)), namespace_(open_of_process(pid, "ns/mnt", O_RDONLY)) {
  is_other_ = !is_same(root_.get(), "/") || !is_same(namespace_.get(), "/proc/self/ns/mnt");
}

std::string TargetRoot::path() const { return process::path_of(getpid(), "fd/" + std::to_string(root_.get())); }

std::vector<std::string> name_functions(const TargetRoot& root, const std::vector<std::string>& traces) {
  std::vector<std::string> failed;
  for (const std::string& trace : traces) {
    try {
      // The library may have refused to record stacks, and reported the reason.
      if (cmt::Reader(trace).header().has_stacks) name_functions_of(root, trace);
    } catch (const std::exception& error) {
      failed.push_back(trace + ": stays without names of functions: " + error.what());
    }
  }
  return failed;
}

}  // namespace cmt::attach
