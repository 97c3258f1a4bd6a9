// Checks and takes a recording, holds it, and gives it on. The hard part is that at each moment somebody has it, or the
// program sees that nobody has.

#include "preload/collector/shared/held_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

#include "preload/collector/encoder.h"
#include "preload/collector/end_mark.h"
#include "preload/collector/process_end.h"

namespace cmt::collector {
namespace {

/// How long a program is held: its page watcher and its stretches begin only after that.
constexpr std::uint64_t held_ns_max = 20'000'000;
/// A full ring is seen so late. So the program never has to ring.
constexpr std::uint64_t step_ns_max = 1'000'000;
/// Below this number, a descriptor could be overwritten by one that a collector inherits.
constexpr int above_inherited = 64;

const char* value_of(Setting setting) { return std::getenv(setting_names[setting]); }

/// Whether two paths lead to the same file, such as a namespace.
bool are_same(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

/// Whether the sender is a process of this user that the message names, with the same files and processes around it.
bool is_served(int connection, const HandOver& message) {
  ucred sender{};
  socklen_t length = sizeof sender;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &sender, &length) != 0) return false;
  static const std::uint64_t own_settings = sum_of_settings(value_of);
  const std::string process = "/proc/" + std::to_string(sender.pid);
  return std::memcmp(message.magic, ring_magic, sizeof message.magic) == 0 && message.settings == own_settings &&
         message.process == static_cast<std::uint32_t>(sender.pid) && sender.uid == ::geteuid() &&
         sender.gid == ::getegid() && are_same(process + "/ns/mnt", "/proc/self/ns/mnt") &&
         are_same(process + "/root/.", "/.");
}

/// The path of this program, as it was first: the kernel names a process by the file's name.
const std::string& own_path() {
  static const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  return path;
}

bool is_regular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

class HeldProgram {
 public:
  HeldProgram(RingMemory& memory, const std::vector<int>& descriptors, const Settings& settings,
              const std::atomic<bool>& stops)
      : memory_(memory),
        control_(memory.control()),
        descriptors_(descriptors),
        process_fd_(descriptors[collector_process - collector_memory]),
        settings_(settings),
        stops_(stops),
        mark_(control_, EndMark::Taking::if_free),
        cpu_ns_before_(clock_ns(CLOCK_THREAD_CPUTIME_ID)) {}

  /// Whether the recording is this thread's, and no longer the program's.
  bool is_taken() const { return mark_.is_taken(); }

  void run() {
    control_.times = settings_.has_times ? 1 : 0;
    const std::uint64_t begun_ns = clock_ns();
    while (!has_ended()) {
      if (needs_collector() || stops_ || clock_ns() - begun_ns > held_ns_max) return start_collector();
    }
    write_trace();
  }

 private:
  /// Waits until the program has ended, but at most until the clock has to be raised. Returns whether it has.
  bool has_ended() {
    const std::uint64_t step_ns =
        settings_.time_step_ns != 0 ? std::min(settings_.time_step_ns, step_ns_max) : step_ns_max;
    const timespec step{0, static_cast<long>(step_ns)};
    pollfd process{process_fd_, POLLIN, 0};
    const bool is_gone = ::ppoll(&process, 1, &step, nullptr) > 0;
    if (settings_.time_step_ns != 0) step_clock(memory_);
    memory_.note_progress();
    const bool executes = __atomic_load_n(&control_.exec_pending, __ATOMIC_ACQUIRE) != 0;
    was_executed_ = executes && (is_gone || was_executed(memory_));  // the end is that of another program
    return is_gone || was_executed_;
  }

  /// Whether the program asks for something, or fills its rings.
  bool needs_collector() const {
    const StartFacts& facts = memory_.start_facts();
    if (!facts.rings_path.empty() || !facts.control_path.empty() || !facts.pprof_path.empty() ||
        settings_.keep.is_set() || settings_.sample_ns != 0 || settings_.time_ns_max != Settings::no_limit)
      return true;
    if (__atomic_load_n(&control_.request, __ATOMIC_ACQUIRE) != 0 ||
        __atomic_load_n(&control_.sandboxed, __ATOMIC_RELAXED) != 0)
      return true;
    const std::uint32_t rings = memory_.ring_count();
    for (std::uint32_t i = 0; i < rings; ++i) {
      const Ring& ring = memory_.ring(i);
      if (__atomic_load_n(&ring.owner, __ATOMIC_ACQUIRE) == 0) continue;
      if (__atomic_load_n(&ring.reserved, __ATOMIC_RELAXED) > __atomic_load_n(&ring.limit, __ATOMIC_RELAXED) / 2)
        return true;
    }
    return false;
  }

  void write_trace() {
    SessionState state{.finished_fd = -1, .cpu_clock = CLOCK_THREAD_CPUTIME_ID, .cpu_ns_before = cpu_ns_before_};
    state.time_step_ns = control_.clock_step_ns;
    state.cpu_ns_at_end = state.cpu_ns();
    state.ended_ns = clock_ns();
    if (was_executed_) {
      state.process_end = ProcessEnd::executed;
    } else {
      const EndOfProcess end = find_process_end(process_fd_, memory_.start_facts().process);
      state.wait_status = end.wait_status;
      state.process_end = end.how;
    }
    run_ended_session(memory_, outputs(), settings_, state);
  }

  /// Starts the program's own collector. Where none can be started, this thread and others of it are the collector.
  void start_collector() {
    const pid_t collector = spawn_collector();
    if (collector <= 0 || !has_taken_over(collector)) run_session(memory_, outputs(), process_fd_);
  }

  std::vector<int> outputs() const {
    return {descriptors_.begin() + (collector_output - collector_memory), descriptors_.end()};
  }

  /// Waits until the collector has put its id into the control block, or has ended.
  bool has_taken_over(pid_t collector) const {
    while (mark_.is_taken() && ::kill(collector, 0) == 0) ::poll(nullptr, 0, 1);
    return !mark_.is_taken();
  }

  /// Returns its process, or -1.
  pid_t spawn_collector() const {
    std::vector<int> high;
    for (const int descriptor : descriptors_) high.push_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, above_inherited));
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (int fd = 0; fd < collector_memory; ++fd)
      ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    bool is_complete = true;
    for (std::size_t i = 0; i < high.size(); ++i) {
      is_complete = is_complete && high[i] >= 0;
      if (is_complete) ::posix_spawn_file_actions_adddup2(&files, high[i], collector_memory + static_cast<int>(i));
    }
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t by_default;
    sigfillset(&by_default);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes, &by_default);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    std::string name = own_path(), option = "--attach";
    char* const words[] = {name.data(), option.data(), nullptr};
    pid_t collector = -1;
    if (!is_complete || ::posix_spawn(&collector, name.c_str(), &files, &attributes, words, environ) != 0)
      collector = -1;
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    for (const int descriptor : high) {
      if (descriptor >= 0) ::close(descriptor);
    }
    return collector;
  }

  RingMemory& memory_;
  Control& control_;
  const std::vector<int>& descriptors_;
  const int process_fd_;
  const Settings& settings_;
  const std::atomic<bool>& stops_;
  EndMark mark_;
  const std::uint64_t cpu_ns_before_;  // of this thread, for programs before
  bool was_executed_ = false;
};

}  // namespace

Descriptors::~Descriptors() {
  for (const int descriptor : all_) ::close(descriptor);
}

std::optional<Handed> receive(int connection) {
  Handed handed;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(hand_over_descriptors_max * sizeof(int))> bytes;
  iovec text{&handed.message, sizeof handed.message};
  msghdr got{};
  got.msg_iov = &text;
  got.msg_iovlen = 1;
  got.msg_control = bytes.data();
  got.msg_controllen = bytes.size();
  const ssize_t length = ::recvmsg(connection, &got, MSG_CMSG_CLOEXEC);
  if (length < 0) return std::nullopt;
  for (cmsghdr* part = CMSG_FIRSTHDR(&got); part != nullptr; part = CMSG_NXTHDR(&got, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof descriptor);
      handed.descriptors.add(descriptor);
    }
  }
  const bool is_whole = length == sizeof handed.message && (got.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
                        handed.message.outputs <= outputs_max &&
                        handed.descriptors.all().size() == collector_output - collector_memory + handed.message.outputs;
  const auto are_regular = [&] {
    const std::vector<int>& all = handed.descriptors.all();
    return std::all_of(all.begin() + (collector_output - collector_memory), all.end(), is_regular);
  };
  if (!is_whole || !are_regular() || !is_served(connection, handed.message)) return std::nullopt;
  return handed;
}

void serve_program(int connection, const Handed& handed, const Settings& settings, const std::atomic<bool>& stops) {
  const std::vector<int>& descriptors = handed.descriptors.all();
  // Memory that cannot shrink: a read of it never fails.
  const int seals = ::fcntl(descriptors[0], F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return;
  const int memory_fd = ::fcntl(descriptors[0], F_DUPFD_CLOEXEC, 0);
  bool is_memorys = false;
  try {
    RingMemory memory(memory_fd, RingMemory::Access::shared, "rings");
    is_memorys = true;
    const StartFacts& facts = memory.start_facts();
    if (facts.outputs != handed.message.outputs || facts.process != handed.message.process) return;
    HeldProgram held(memory, descriptors, settings, stops);
    if (!held.is_taken()) return;
    static_cast<void>(::send(connection, "", 1, MSG_NOSIGNAL) < 0);  // the program sees that its recording was taken
    held.run();
  } catch (const std::exception&) {  // the program sees the end mark
    if (!is_memorys && memory_fd >= 0) ::close(memory_fd);
  }
}

}  // namespace cmt::collector
