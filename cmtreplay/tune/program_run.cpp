// Samples /proc/PID/status of a tree of processes. The command is traced, so that it stops at its end with its memory
// still there: a command that grows in its last milliseconds is measured too. Where tracing is forbidden, what it takes
// after the last sample is missed.
#include "cmtreplay/tune/program_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>

#include "cmtreplay/run/statistics.h"
#include "cmtreplay/run/worker_process.h"
#include "libcmt/text/utf8.h"
#include "toolkit/files/sha256.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::replay {
namespace {

constexpr long sample_ns = 10'000'000;

/// Peak and mean of a figure that is sampled.
struct Sampled {
  std::uint64_t peak = 0;
  MeanOverTime mean = {};

  void add(std::uint64_t now, std::uint64_t high, std::int64_t passed_ns) {
    mean.add(static_cast<double>(passed_ns), now);
    peak = std::max(peak, high);
  }
};

/// The memory of a process and its descendants. A child of vfork(2) has its parent's until it executes a program.
class TreeMemory {
 public:
  explicit TreeMemory(pid_t root) : root_(root) {}

  void sample() {
    std::uint64_t resident = 0, high = 0, anonymous = 0, anonymous_high = 0, count = 0;
    std::vector<int> processes{root_};
    while (!processes.empty()) {
      const int pid = processes.back();
      processes.pop_back();
      try {
        const process::Status status = process::read_status(pid);
        const std::uint64_t file = std::min(status.resident_file_bytes, status.resident_bytes);
        const std::uint64_t peak = std::max(status.resident_bytes_peak, status.resident_bytes);
        resident += status.resident_bytes;
        high += peak;
        anonymous += status.resident_bytes - file;
        anonymous_high += peak - file;
        ++count;
        process::write_file(process::path_of(pid, "clear_refs"), "5");
        for (const int child : process::read_children(pid)) {
          if (!process::share_memory(pid, child)) processes.push_back(child);
        }
      } catch (const std::system_error&) {  // it has ended, or its mark cannot be reset
      }
    }
    const std::int64_t now = process::now_ns(), passed = now - at_ns_;
    all_.add(resident, high, passed);
    if (anonymous_high > anonymous_.peak) processes_at_peak_ = count;
    anonymous_.add(anonymous, anonymous_high, passed);
    at_ns_ = now;
  }

  void fill(ProgramRun& run) const {
    run.peak_bytes = all_.peak;
    run.mean_bytes = all_.mean.mean();
    run.peak_anonymous_bytes = anonymous_.peak;
    run.mean_anonymous_bytes = anonymous_.mean.mean();
    run.processes_at_peak = processes_at_peak_;
  }

 private:
  pid_t root_;
  std::int64_t at_ns_ = process::now_ns();
  Sampled all_, anonymous_;
  std::uint64_t processes_at_peak_ = 0;
};

/// The files that a process has mapped; empty if they cannot be read.
std::vector<std::string> mapped_files(int pid) {
  std::vector<std::string> files;
  try {
    for (process::Mapping& mapping : process::parse_smaps(process::read_file(process::path_of(pid, "maps")), "maps")) {
      if (mapping.name.starts_with("/")) files.push_back(std::move(mapping.name));
    }
  } catch (const std::system_error&) {
  }
  return files;
}

/// Whether a library with this file name has a malloc that takes the place of the C library's.
bool has_malloc(const std::string& file_name) {
  constexpr std::array names{"libjemalloc", "libmimalloc",     "libtcmalloc",       "libtbbmalloc_proxy",
                             "libhoard",    "libsnmallocshim", "librpmalloc",       "libscudo",
                             "libmesh",     "liblockless",     "libhardened_malloc"};
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return file_name.starts_with(name); });
}

/// The command while it runs. Its group is killed with its owner.
class RunningProgram {
 public:
  explicit RunningProgram(const launch::SpawnOptions& options) : pid_(launch::spawn_traced(options)), memory_(pid_) {}
  ~RunningProgram() {
    kill(-pid_, SIGKILL);
    // A traced process also stops on its way out of a SIGKILL, and then keeps its ports until it is resumed.
    for (int status = 0; !ended_ && waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);)
      launch::resume_traced(pid_, status);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  /// Takes a sample, then waits until a child changes or the next sample is due. Returns whether the command has ended.
  bool step(const command::Interrupts& interrupts) {
    if (interrupts.pending()) throw Interrupted();
    if (!ended_) memory_.sample();
    const sigset_t child = command::signal_set({SIGCHLD});
    const timespec distance{.tv_sec = 0, .tv_nsec = sample_ns};
    if (!reap()) sigtimedwait(&child, nullptr, &distance);
    return reap();
  }

  pid_t pid() const { return pid_; }
  bool has_ended() const { return ended_.has_value(); }
  const launch::Ended& ended() const { return *ended_; }
  std::int64_t end_ns() const { return end_ns_; }

  /// Compares the libraries that the command has loaded with the allocator that it should have.
  void check_malloc(ProgramRun& run, const Allocator& allocator) const {
    if (files_.empty() || allocator.null || !allocator.prefix.empty()) return;
    if (allocator.preload.empty()) {
      for (const std::string& file : files_) {
        const std::string name = std::filesystem::path(file).filename();
        if (has_malloc(name)) run.own_malloc = name;
      }
      return;
    }
    std::error_code error;
    const std::string library = std::filesystem::canonical(allocator.library, error);
    if (!error && run.fault.empty() && std::find(files_.begin(), files_.end(), library) == files_.end())
      run.fault = "it did not load " + std::filesystem::path(library).filename().string() +
                  " (is it linked statically, or another user's?)";
  }

  void fill(ProgramRun& run) const {
    memory_.fill(run);
    const auto ns = [](const timeval& time) {
      return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
    };
    run.cpu_ns = ns(usage_.ru_utime) + ns(usage_.ru_stime);
    run.minor_faults = static_cast<std::uint64_t>(usage_.ru_minflt);
  }

 private:
  bool reap() {
    int status = 0;
    while (!ended_ && wait4(pid_, &status, WNOHANG, &usage_) == pid_) {
      if (WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXIT) {
          memory_.sample();
          files_ = mapped_files(pid_);
        }
        launch::resume_traced(pid_, status);
        continue;
      }
      end_ns_ = process::now_ns();
      ended_ = launch::ended_of(status);
    }
    return ended_.has_value();
  }

  pid_t pid_;
  TreeMemory memory_;
  std::vector<std::string> files_;  // at its end; empty: not known
  std::optional<launch::Ended> ended_;
  rusage usage_{};
  std::int64_t end_ns_ = 0;
};

/// The moment at which a command, or a server's start, load or end, is given up.
class Limit {
 public:
  explicit Limit(unsigned seconds) : seconds_(seconds) {}
  bool is_over() const {
    return seconds_ != 0 && process::now_ns() > begin_ns_ + std::int64_t{1'000'000'000} * seconds_;
  }
  std::string text() const { return "within " + std::to_string(seconds_) + " s"; }

 private:
  unsigned seconds_;
  std::int64_t begin_ns_ = process::now_ns();
};

bool succeeded(const launch::Ended& ended) { return ended.signal == 0 && ended.status == 0; }

/// Waits until `ready` succeeds. Returns the fault; empty: it did.
std::string wait_until_ready(const ProgramCommand& command, RunningProgram& program,
                             const command::Interrupts& interrupts) {
  const Limit limit(command.timeout_seconds);
  while (!limit.is_over()) {
    if (program.step(interrupts)) return "it ended before it was ready: " + ending_text(program.ended());
    if (command.ready.empty()) return "";
    const auto asked =
        run_captured({.words = command_words(command.ready), .has_own_group = true}, command.timeout_seconds);
    if (asked && succeeded(asked->ended)) return "";
  }
  return "it was not ready " + limit.text();
}

/// Whether a shell can become the program instead of starting it. Nothing outside of quotes joins commands then, and
/// the first word is a program, and no command of the shell itself.
bool is_one_program(const std::string& command) {
  constexpr std::array own{"[", "echo", "false", "kill", "printf", "pwd", "test", "true"};
  char quote = 0;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'')
      ++i;
    else if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (std::strchr("|&;()`#\n", c))
      return false;
  }
  std::string first;
  std::istringstream(command) >> first;
  const bool sets_variable = first.find('=') != first.npos;
  return !sets_variable && std::find(own.begin(), own.end(), first) == own.end() &&
         !launch::find_in_path(first).empty();
}

/// The last line of a file that has text, or the end of a long one.
std::string last_line(int file) {
  std::string end(300, '\0');
  const off_t size = lseek(file, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(end.size()));
  end.resize(static_cast<std::size_t>(std::max<ssize_t>(0, pread(file, end.data(), end.size(), from))));
  end.erase(end.find_last_not_of(" \t\r\n") + 1);
  return text::to_line(end.substr(end.find_last_of("\r\n") + 1));
}

/// Runs the load on a server. Returns the fault; empty: there was none.
std::string run_load(const ProgramCommand& command, RunningProgram& program, const launch::SpawnOptions& streams,
                     const command::Interrupts& interrupts, std::uint64_t& wall_ns) {
  if (std::string fault = wait_until_ready(command, program, interrupts); !fault.empty()) return fault;
  launch::SpawnOptions options = streams;
  options.words = command_words(command.load);
  options.environment.clear();
  const std::int64_t begin = process::now_ns();
  const Limit limit(command.limit_seconds);
  launch::ChildProcess load(options);
  while (!load.has_ended()) {
    if (program.step(interrupts)) return "it ended under load: " + ending_text(program.ended());
    if (limit.is_over()) return "the load did not end " + limit.text();
  }
  wall_ns = static_cast<std::uint64_t>(process::now_ns() - begin);
  const launch::Ended ended = load.wait();
  return succeeded(ended) ? "" : "the load failed: " + ending_text(ended);
}

/// Stops a server, which then may keep its data. Returns the fault; empty: there was none.
std::string stop_server(const ProgramCommand& command, RunningProgram& program, const command::Interrupts& interrupts) {
  kill(program.pid(), command.stop_signal);
  const Limit end(command.timeout_seconds);
  while (!program.step(interrupts))
    if (end.is_over()) return "it did not end " + end.text() + " of its signal";
  const launch::Ended& ended = program.ended();
  return succeeded(ended) || ended.signal == command.stop_signal ? "" : ending_text(ended);
}

}  // namespace

std::vector<std::string> command_words(const std::string& command) {
  if (command.find_first_of("|&;<>()$`\\\"'*?[]#~=%!{}\n") != command.npos)
    return {"/bin/sh", "-c", (is_one_program(command) ? "exec " : "") + command};
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

ProgramRun run_program(const ProgramCommand& command, const Allocator& allocator,
                       const command::Interrupts& interrupts) {
  const command::HeldSignals held(command::signal_set({SIGCHLD}));
  const process::Fd output(memfd_create("program-output", MFD_CLOEXEC)),
      errors(memfd_create("program-errors", MFD_CLOEXEC)), null(open("/dev/null", O_RDWR | O_CLOEXEC));
  launch::SpawnOptions options = worker_command("", "", allocator);
  options.words = command_words(command.command);
  options.input_fd = null.get();
  options.output_fd = command.is_server() ? null.get() : output.get();
  options.error_fd = errors.get();
  launch::SpawnOptions load = options;
  load.output_fd = output.get();
  ProgramRun run;
  const std::int64_t begin = process::now_ns();
  RunningProgram program(options);
  if (command.is_server()) {
    run.fault = run_load(command, program, load, interrupts, run.wall_ns);
    const std::string stopped = program.has_ended() ? "" : stop_server(command, program, interrupts);
    if (run.fault.empty()) run.fault = stopped;
  } else {
    const Limit limit(command.limit_seconds);
    while (!program.step(interrupts) && run.fault.empty())
      if (limit.is_over()) run.fault = "it did not end " + limit.text();
    if (run.fault.empty()) {
      run.wall_ns = static_cast<std::uint64_t>(program.end_ns() - begin);
      if (!succeeded(program.ended())) run.fault = ending_text(program.ended());
    }
  }
  program.fill(run);
  program.check_malloc(run, allocator);
  if (!run.fault.empty()) run.message = last_line(errors.get());
  run.output_sha256 = files::sha256_of_file("/proc/self/fd/" + std::to_string(output.get()));
  return run;
}

}  // namespace cmt::replay
