// The watch over a session: whether the process lives, samples of its memory, commands from outside.
//
// A process ends in two ways: it is gone (its pidfd can be read), or it has become another one by exec. The second is
// seen in /proc/PID/maps, where our memory is no longer; looked for often where the program has announced it, and
// seldom otherwise, because maps can be long.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <fstream>

#include "preload/collector/collector.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

/// As in Linux 6.15's pidfd.h.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
constexpr unsigned long pidfd_get_info = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t pidfd_info_exit = 1 << 3;

constexpr std::uint64_t tick_ns = 50'000'000, exec_seldom_ns = 2'000'000'000;

}  // namespace

void Session::watch() {
  Control& control = memory_.control();
  std::uint64_t sampled_ns = clock_ns(), looked_ns = clock_ns();
  while (!over_ && end_ == End::none) {
    const std::uint64_t period = settings_.sample_ns != 0 ? std::min(settings_.sample_ns, tick_ns) : tick_ns;
    pollfd fds[] = {{process_fd_, POLLIN, 0}, {control_fd_, POLLIN, 0}, {over_fd_, POLLIN, 0}};
    ::poll(fds, 3, static_cast<int>(std::max<std::uint64_t>(period / 1'000'000, 1)));
    if ((fds[1].revents & POLLIN) != 0) read_commands();
    const std::uint64_t now = clock_ns();
    if (settings_.sample_ns != 0 && now - sampled_ns >= settings_.sample_ns) {
      sampled_ns = now;
      sample();
    }
    const bool gone = process_fd_ >= 0 ? (fds[0].revents & POLLIN) != 0
                                       : ::kill(static_cast<pid_t>(control.process), 0) != 0 && errno == ESRCH;
    if (gone) {
      end_ = how_it_ended();
    } else if (__atomic_load_n(&control.exec_pending, __ATOMIC_ACQUIRE) != 0 || now - looked_ns > exec_seldom_ns) {
      if (was_executed()) end_ = End::executed;
      if (now - looked_ns > exec_seldom_ns) end_waiting();
      looked_ns = now;
    }
  }
  ring_bell();
}

/// A program that waits for its keeper gets the keeper's end: it has no other children, and would wait for ever. We go
/// on as a child of init. The first process of a container inherits its collector instead, and so gains nothing.
void Session::end_waiting() {
  const int keeper = ::getppid();
  const bool is_waiting = memory_.process() != 1 && waits_for_only(memory_.process(), keeper);
  if (is_waiting && was_waiting_) ::kill(keeper, SIGKILL);
  was_waiting_ = is_waiting;
}

bool Session::was_executed() const {
  struct stat status {};
  if (::fstat(memory_.descriptor(), &status) != 0) return false;
  const std::string inode = " " + std::to_string(status.st_ino) + " ";
  std::ifstream maps("/proc/" + std::to_string(memory_.process()) + "/maps");
  bool readable = false;
  for (std::string line; std::getline(maps, line); readable = true) {
    if (line.find(inode) != std::string::npos) return false;
  }
  return readable;
}

/// Known to the kernel's pidfd once somebody has waited for the process, and to /proc before: the last number of a
/// line.
int Session::wait_status() const {
  PidfdInfo info{};
  info.mask = pidfd_info_exit;
  if (::ioctl(process_fd_, pidfd_get_info, &info) == 0 && (info.mask & pidfd_info_exit) != 0) return info.exit_code;
  std::ifstream stat("/proc/" + std::to_string(memory_.process()) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t blank = line.rfind(' ');
  if (line.find(") Z ") == std::string::npos) return -1;
  return static_cast<int>(std::strtol(line.c_str() + blank, nullptr, 10));
}

// It may be waited for between the two looks, and then the first knows.
Session::End Session::how_it_ended() {
  for (int tries = 0; tries < 20 && wait_status_ < 0; ++tries) {
    wait_status_ = wait_status();
    if (wait_status_ < 0) ::poll(nullptr, 0, 1);
  }
  if (wait_status_ < 0) return End::unknown;
  return WIFEXITED(wait_status_) ? End::exited : End::killed;
}

void Session::sample() {
  std::ifstream statm("/proc/" + std::to_string(memory_.process()) + "/statm");
  std::uint64_t size = 0, resident = 0;
  if (!(statm >> size >> resident)) return;
  put_event(static_cast<std::uint32_t>(Kind::sample), resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
            "");
}

/// An event that no thread of the program made, as a ring of its own would have it.
void Session::put_event(std::uint32_t kind, std::uint64_t size, std::string_view label) {
  Packer records;
  const std::uint64_t stamp = clock_stamp(memory_.control());
  records.add(record_stamp_high, stamp >> 32);
  if (size >> 32 != 0) records.add(record_size, size);
  while (!label.empty()) {
    const std::size_t length = std::min<std::size_t>(label.size(), piece_bytes);
    const Slot slot = slot_of_piece(label.data(), length);
    records.add(slot.head, slot.body);
    label.remove_prefix(length);
  }
  records.add(kind, size << 32 | (stamp & 0xffffffff));
  // What follows it in a thread that has no clock of its own.
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i)
    __atomic_store_n(&memory_.ring(i).clock, stamp, __ATOMIC_RELAXED);
  backlog_.put({.ring = rings_max, .records = records.take()});
}

void Session::open_control() {
  if (memory_.control().control_path[0] == 0) return;
  control_fd_ = ::open(memory_.control().control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

// What a line is cut in, because it did not fit any more, waits for the rest.
void Session::read_commands() {
  char text[PIPE_BUF];
  const ssize_t got = ::read(control_fd_, text, sizeof text);
  if (got <= 0) return;
  commands_.append(text, static_cast<std::size_t>(got));
  std::string_view lines = commands_;
  const bool is_cut = got == sizeof text && lines.find('\n') != lines.npos && lines.back() != '\n';
  const std::size_t whole = is_cut ? lines.rfind('\n') + 1 : lines.size();
  for (lines = lines.substr(0, whole); !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    command(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  commands_.erase(0, whole);
}

void Session::put_mark(std::string label) {
  if (label.size() > label_bytes_max) label.resize(label_bytes_max);
  make_utf8(label.data(), label.size());
  put_event(static_cast<std::uint32_t>(Kind::mark), 0, label);
}

void Session::set_paused(bool paused) {
  put_mark(paused ? "cmt_pause" : "cmt_resume");
  __atomic_store_n(&memory_.control().paused, paused ? 1 : 0, __ATOMIC_SEQ_CST);
  if (paused) drainer_.call_threads();
}

// Who wrote a command that is none sees that in the trace: nobody else reads what we could say.
void Session::command(std::string_view line) {
  if (line == "stop" || line == "start") {
    set_paused(line == "stop");
  } else if (line == "flush") {
    flush_asked_ = true;
  } else if (line.starts_with("mark ")) {
    put_mark(std::string(line.substr(5)));
  } else if (!line.empty()) {
    put_mark("unknown command: " + std::string(line));
  }
  ring_bell();
}

}  // namespace cmt::collector
