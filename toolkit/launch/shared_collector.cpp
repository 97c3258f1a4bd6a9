// Makes the socket, and starts the collector with it as standard input.

#include "toolkit/launch/shared_collector.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>

#include "toolkit/launch/spawn.h"
#include "toolkit/launch/tracer.h"

namespace cmt::launch {
namespace {

constexpr int waiting_max = 1024;  // the kernel may allow fewer

/// Returns a socket that only this user's processes can connect to, or -1.
process::Fd listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  process::Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (listener.get() < 0 || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0600) != 0 || listen(listener.get(), waiting_max) != 0)
    return {};
  return listener;
}

/// How many filters of system calls this process has (preload/program/launch/hand_over.c); 0: none, or not known.
std::string count_filters() {
  return std::to_string(process::find_figure(process::read_file("/proc/self/status"), "Seccomp_filters").value_or(0));
}

}  // namespace

SharedCollector::SharedCollector(const std::string& folder, Environment& environment)
    : path_(folder + "/collector." + count_filters()) {
  const process::Fd listener = listen_at(path_);
  std::array<int, 2> ends{-1, -1};
  if (listener.get() < 0 || pipe2(ends.data(), O_CLOEXEC) != 0) {
    unlink(path_.c_str());
    path_.clear();
    return;
  }
  const process::Fd its_end(ends[0]), null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  alive_ = process::Fd(ends[1]);
  environment.emplace_back("CMTTRACE_SHARED", path_);
  try {
    SpawnOptions options{.words = {collector_path(), "--serve"},
                         .environment = environment,
                         .input_fd = listener.get(),
                         .output_fd = its_end.get(),
                         .error_fd = null.get(),
                         .has_own_group = true};
    options.environment.emplace_back("LD_PRELOAD", "");  // the last value counts
    spawn(options);
  } catch (const std::exception&) {  // programs find nobody at the socket
    unlink(path_.c_str());
  }
}

SharedCollector::~SharedCollector() {
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace cmt::launch
