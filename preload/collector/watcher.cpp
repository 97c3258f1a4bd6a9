// The watch thread and the clock thread of a session. The hard part is to notice the end of a process, which may be an
// exit, a signal or an exec, and which another process may observe first.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cmt/event.h"
#include "libcmt/trace/files.h"
#include "preload/collector/collector.h"
#include "preload/collector/encoder.h"
#include "preload/collector/pages/resident_rings.h"
#include "preload/collector/process_end.h"
#include "preload/collector/run_times.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t tick_ns = 50'000'000, slow_tick_ns = 2'000'000'000;

std::string proc_folder(std::uint32_t process) { return "/proc/" + std::to_string(process); }

class WatchThread {
 public:
  WatchThread(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd,
              const std::vector<int>& outputs, const Settings& settings)
      : memory_(memory),
        backlog_(backlog),
        state_(state),
        process_fd_(process_fd),
        outputs_(outputs),
        sample_ns_(settings.sample_ns),
        keeps_(settings.keep.is_set()),
        profiles_(!memory.start_facts().pprof_path.empty()) {
    const std::string& path = memory.start_facts().control_path;
    if (!path.empty()) commands_fd_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    sigset_t asks{};
    sigaddset(&asks, SIGUSR1);
    if (keeps_ || profiles_) signals_fd_ = ::signalfd(-1, &asks, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~WatchThread() {
    if (commands_fd_ >= 0) ::close(commands_fd_);
    if (signals_fd_ >= 0) ::close(signals_fd_);
  }
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  void run() {
    Control& control = memory_.control();
    const std::uint64_t look_ns = state_.run_times != nullptr ? StretchTable::stretch_ns_min : tick_ns;
    const std::uint64_t period_ns = std::min(sample_ns_ != 0 ? std::min(sample_ns_, tick_ns) : tick_ns, look_ns);
    std::uint64_t sampled_ns = clock_ns(), slow_tick_at_ns = clock_ns();
    while (!state_.is_finished && state_.process_end == ProcessEnd::none) {
      pollfd fds[] = {{process_fd_, POLLIN, 0},
                      {commands_fd_, POLLIN, 0},
                      {state_.finished_fd, POLLIN, 0},
                      {signals_fd_, POLLIN, 0}};
      ::poll(fds, std::size(fds), static_cast<int>(std::max<std::uint64_t>(period_ns / 1'000'000, 1)));
      if ((fds[1].revents & POLLIN) != 0) read_commands();
      if ((fds[3].revents & POLLIN) != 0) read_signal();
      state_.has_reader = has_reader();
      const std::uint64_t now = clock_ns();
      if (sample_ns_ != 0 && now - sampled_ns >= sample_ns_) {
        sampled_ns = now;
        put_sample();
      }
      const bool is_gone = process_fd_ >= 0
                               ? (fds[0].revents & POLLIN) != 0
                               : ::kill(static_cast<pid_t>(memory_.start_facts().process), 0) != 0 && errno == ESRCH;
      const bool is_slow_tick = now - slow_tick_at_ns > slow_tick_ns;
      if (state_.run_times != nullptr && !is_gone) state_.run_times->look_if_due(now);
      if (is_gone) {
        if (state_.run_times != nullptr) state_.run_times->look();
        note_end(now);
        const EndOfProcess end = find_process_end(process_fd_, memory_.start_facts().process);
        state_.wait_status = end.wait_status;
        state_.process_end = end.how;
      } else if (is_slow_tick || __atomic_load_n(&control.exec_pending, __ATOMIC_ACQUIRE) != 0) {
        if (was_executed(memory_)) {
          note_end(now);
          state_.process_end = ProcessEnd::executed;
        }
        if (is_slow_tick) end_supervisors_parent_wait();
        slow_tick_at_ns = now;
      }
    }
    memory_.ring_bell();
  }

 private:
  void note_end(std::uint64_t now_ns) {
    state_.cpu_ns_at_end = state_.cpu_ns();
    state_.ended_ns = now_ns;
  }

  /// Ends a deadlock with strace(1) and others that wait with __WALL until they have no child. Such a wait sees the
  /// supervisor (collector_start.c), which no other wait() sees. The supervisor waits for the collector, the collector
  /// for the program's end, and the program for the supervisor. So the watch thread kills the supervisor, and the
  /// collector goes on as a child of init. A process that inherits orphans then waits for the collector, and is not
  /// helped. The first process of a container is left alone.
  void end_supervisors_parent_wait() {
    const auto process = static_cast<int>(memory_.start_facts().process);
    const int supervisor = ::getppid();
    const bool is_waiting = process != 1 && waits_for_only(process, supervisor);
    if (is_waiting && was_wait_found_) ::kill(supervisor, SIGKILL);
    was_wait_found_ = is_waiting;
  }

  /// Whether a process holds the lock of those who read a trace.
  bool has_reader() const {
    return std::any_of(outputs_.begin(), outputs_.end(), [](int fd) {
      struct flock lock = lock_of(F_WRLCK, reader_at_work);
      return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    });
  }

  /// The resident memory without the tracer's: its rings, and the owners of pieces.
  void put_sample() {
    std::ifstream statm(proc_folder(memory_.start_facts().process) + "/statm");
    std::uint64_t size = 0, resident = 0;
    if (!(statm >> size >> resident) || resident == 0) return;  // of a process that has ended, all figures are 0
    const std::uint64_t bytes = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t own =
        resident_rings_.count() + __atomic_load_n(&memory_.control().owners_bytes, __ATOMIC_RELAXED);
    put_event(Kind::sample, bytes - std::min(own, bytes), "");
  }

  /// Puts an event that no thread of the program recorded, as records of one more ring.
  void put_event(Kind kind, std::uint64_t size, std::string text) {
    if (text.size() > label_bytes_max) text.resize(label_bytes_max);
    make_utf8(text.data(), text.size());
    Packer records;
    const std::uint64_t stamp = clock_stamp(memory_.start_facts());
    records.append(record_stamp_high, stamp >> 32);
    if (size >> 32 != 0) records.append(record_size, size);
    for (std::string_view label = text; !label.empty();) {
      const std::size_t length = std::min<std::size_t>(label.size(), piece_bytes);
      const Slot slot = slot_of_piece(label.data(), length);
      records.append(slot.head, slot.body);
      label.remove_prefix(length);
    }
    records.append(static_cast<std::uint64_t>(kind), size << 32 | (stamp & 0xffffffff));
    memory_.raise_clock(stamp + 1);  // later events with coarse stamps come after it
    backlog_.put({.ring = rings_max, .records = records.finish()});
  }

  /// Reads the lines that are there, and obeys them. A last line without a newline counts as complete, unless the read
  /// has cut it off.
  void read_commands() {
    char text[PIPE_BUF];
    const ssize_t got = ::read(commands_fd_, text, sizeof text);
    if (got <= 0) return;
    command_text_.append(text, static_cast<std::size_t>(got));
    std::string_view lines = command_text_;
    const bool is_cut = got == sizeof text && lines.find('\n') != lines.npos && lines.back() != '\n';
    const std::size_t whole = is_cut ? lines.rfind('\n') + 1 : lines.size();
    for (lines = lines.substr(0, whole); !lines.empty();) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      obey(lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    assert(whole <= command_text_.size());
    command_text_.erase(0, whole);
  }

  void ask(WorkItem::Type type) { backlog_.put({.type = type, .clock_ns = clock_ns()}); }

  void read_signal() {
    signalfd_siginfo info;
    if (::read(signals_fd_, &info, sizeof info) > 0) ask(keeps_ ? WorkItem::Type::flush : WorkItem::Type::profile);
    memory_.ring_bell();
  }

  // An unknown command becomes a mark, because its writer would see no other answer.
  void obey(std::string_view command) {
    if (command == "stop" || command == "start") {
      set_paused(command == "stop");
    } else if (command == "flush" || (command == "keep" && keeps_)) {
      ask(WorkItem::Type::flush);
    } else if (command == "profile" && profiles_) {
      ask(WorkItem::Type::profile);
    } else if (command.starts_with("mark ")) {
      put_event(Kind::mark, 0, std::string(command.substr(5)));
    } else if (!command.empty()) {
      put_event(Kind::mark, 0, "unknown command: " + std::string(command));
    }
    memory_.ring_bell();
  }

  void set_paused(bool paused) {
    put_event(Kind::mark, 0, paused ? "cmt_pause" : "cmt_resume");
    if (paused && __atomic_load_n(&memory_.control().paused, __ATOMIC_RELAXED) == 0)
      __atomic_fetch_add(&memory_.control().pauses, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&memory_.control().paused, paused ? 1 : 0, __ATOMIC_SEQ_CST);
    if (paused) memory_.notify_threads();
  }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  // The watch thread's own.
  const int process_fd_;
  const std::vector<int>& outputs_;
  const std::uint64_t sample_ns_;
  const bool keeps_, profiles_;
  int signals_fd_ = -1;
  int commands_fd_ = -1;
  std::string command_text_;  // was read; its last line is not complete
  ResidentRings resident_rings_{memory_};
  bool was_wait_found_ = false;  // end_supervisors_parent_wait() found the wait at its last call
};

}  // namespace

// The thread may lose the processor between the clock's reading and the rise. So a step begins before the reading of
// one rise, and ends after the next rise.
void step_clock(RingMemory& memory) {
  Control& control = memory.control();
  const std::uint64_t begin_ns = clock_ns();
  memory.raise_clock(clock_stamp(memory.start_facts()));
  const std::uint64_t raised_ns =
      control.clock_raised_ns != 0 ? control.clock_raised_ns : memory.start_facts().start_ns;
  control.clock_step_ns = std::max(control.clock_step_ns, clock_ns() - raised_ns);
  __atomic_store_n(&control.clock_raised_ns, begin_ns, __ATOMIC_RELAXED);  // the encoder reads it
}

void run_clock(RingMemory& memory, SessionState& state, std::uint64_t step_ns) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  const timespec step{static_cast<time_t>(step_ns / 1'000'000'000), static_cast<long>(step_ns % 1'000'000'000)};
  state.time_step_ns = memory.control().clock_step_ns;  // of collectors before this one
  while (!state.is_finished && state.process_end == ProcessEnd::none) {
    pollfd finished{state.finished_fd, POLLIN, 0};
    ::ppoll(&finished, 1, &step, nullptr);
    step_clock(memory);
    state.time_step_ns = memory.control().clock_step_ns;
  }
}

bool is_wait_for_any(const std::string& line) {
  std::istringstream words(line);
  long call = -1;
  std::uint64_t arguments[4] = {};
  words >> call >> std::hex;
  for (std::uint64_t& argument : arguments) words >> argument;
  if (!words) return false;
  const bool is_any = (call == SYS_wait4 && static_cast<std::int32_t>(arguments[0]) == -1) ||
                      (call == SYS_waitid && arguments[0] == P_ALL);
  const std::uint64_t options = call == SYS_wait4 ? arguments[2] : arguments[3];
  return is_any && (options & (__WALL | __WCLONE)) != 0 && (options & WNOHANG) == 0;
}

bool waits_for_only(int process, int child) {
  const std::string folder = proc_folder(static_cast<std::uint32_t>(process));
  std::string line;
  if (!std::getline(std::ifstream(folder + "/syscall"), line) || !is_wait_for_any(line)) return false;
  bool has_child = false;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::ifstream children(task.path() / "children");
    for (int other = 0; children >> other; has_child = true) {
      if (other != child) return false;
    }
  }
  return has_child;
}

void run_watcher(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd,
                 const std::vector<int>& outputs, const Settings& settings) {
  WatchThread(memory, backlog, state, process_fd, outputs, settings).run();
}

}  // namespace cmt::collector
