// Keeps one thread more at the socket than programs are held.

#include "preload/collector/shared/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <filesystem>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "preload/collector/encoder.h"
#include "preload/collector/end_mark.h"
#include "preload/collector/shared/held_program.h"

namespace cmt::collector {
namespace {

class Server {
 public:
  explicit Server(int listener) : listener_(listener) {}

  void run(int launcher) {
    {
      const std::lock_guard lock(mutex_);
      start_thread();
      if (threads_ == 0) return;
    }
    pollfd end{launcher, POLLIN, 0};
    while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    stops_ = true;
    ::shutdown(listener_, SHUT_RDWR);  // ends each accept4()
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return threads_ == 0; });
  }

 private:
  static constexpr int threads_max = 64;
  static constexpr timeval message_time_max{0, 200'000};

  /// With the mutex.
  void start_thread() {
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
      ++idle_;
    } catch (const std::system_error&) {  // a limit: programs wait, and then start collectors of their own
    }
  }

  void work() {
    for (int connection; (connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0 || errno != EINVAL;) {
      if (connection < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ::poll(nullptr, 0, 1);
        continue;
      }
      if (note_busy()) serve(connection);
      ::close(connection);
      const std::lock_guard lock(mutex_);
      ++idle_;
    }
    const std::lock_guard lock(mutex_);
    --idle_;
    if (--threads_ == 0) ended_.notify_all();
  }

  /// Returns false if this is the last thread that listens: it refuses, so that nobody waits for an answer.
  bool note_busy() {
    const std::lock_guard lock(mutex_);
    if (--idle_ == 0 && threads_ < threads_max) start_thread();
    return idle_ > 0;
  }

  void serve(int connection) {
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &message_time_max, sizeof message_time_max);
    try {
      if (const auto handed = receive(connection)) serve_program(connection, *handed, settings_, stops_);
    } catch (const std::bad_alloc&) {  // the program starts a collector of its own
    }
  }

  const int listener_;
  const Settings settings_;
  std::atomic<bool> stops_ = false;
  std::mutex mutex_;  // guards all below
  std::condition_variable ended_;
  int threads_ = 0, idle_ = 0;
};

/// Removes the socket, and the launcher's folder if that is empty: a launcher that was killed has left them.
void remove_socket(int listener) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sun_path[0] != '/')
    return;
  ::unlink(address.sun_path);
  ::rmdir(std::filesystem::path(address.sun_path).parent_path().c_str());
}

}  // namespace

void run_server(int listener, int launcher) {
  std::signal(SIGCHLD, SIG_IGN);  // nobody waits for the collectors that are started here
  if (EndMark::is_known_to_kernel()) Server(listener).run(launcher);
  remove_socket(listener);
}

}  // namespace cmt::collector
