// Reads /proc and the process's clock, and joins stretches.
#include "preload/collector/run_times.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {
namespace {

/// Looks take at most one part in so many of the time.
constexpr std::uint64_t looks_share = 256;

/// A stretch does not reach back further once it is so long.
constexpr std::uint64_t reach_ns_max = 1'000'000'000;

/// Whether less than some 64th was waiting.
bool is_quiet(const RunStretch& stretch) {
  return stretch.waited_ns + stretch.held_ns <= (stretch.ran_ns + stretch.elapsed_ns / 16) / 64;
}

/// "RAN WAITED SLICES", in ns.
std::optional<ThreadTimes> read_thread(int tasks, const char* thread) {
  const int fd = ::openat(tasks, (std::string(thread) + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[128] = {};
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (length <= 0) return std::nullopt;
  char* rest = nullptr;
  ThreadTimes times;
  times.ran_ns = std::strtoull(text, &rest, 10);
  times.waited_ns = std::strtoull(rest, nullptr, 10);
  return times;
}

ThreadSums::Threads read_threads(std::uint32_t process) {
  ThreadSums::Threads threads;
  DIR* const folder = ::opendir(("/proc/" + std::to_string(process) + "/task").c_str());
  if (folder == nullptr) return threads;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    if (const auto times = read_thread(::dirfd(folder), entry->d_name)) threads[std::atoi(entry->d_name)] = *times;
  }
  ::closedir(folder);
  return threads;
}

/// Processor time of all threads of the process, also of those that have ended. Nothing: the process is gone.
std::optional<std::uint64_t> processor_time(std::uint32_t process) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(static_cast<pid_t>(process), &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Returns `later` less `earlier`, or 0 if that is negative.
std::uint64_t since(std::uint64_t later, std::uint64_t earlier) { return later - std::min(later, earlier); }

}  // namespace

void StretchTable::add(RunStretch next, std::uint64_t held_each_ns) {
  if (next.elapsed_ns == 0) return;
  reach_back(next, since(next.busy_ns + held_each_ns, next.elapsed_ns));
  next.busy_ns = std::min(next.busy_ns, next.elapsed_ns);
  const bool joins = !stretches_.empty() &&
                     (stretches_.back().elapsed_ns < least_ns_ || (is_quiet(stretches_.back()) && is_quiet(next)));
  if (joins) {
    stretches_.back() += next;
    return;
  }
  if (stretches_.size() == count_max) join_pairs();
  stretches_.push_back(next);
}

/// Lengthens a stretch backwards by the time that its waits began before it. Joins stretches that are shorter than
/// that; in those, other threads may have run.
void StretchTable::reach_back(RunStretch& next, std::uint64_t excess_ns) {
  while (excess_ns != 0 && !stretches_.empty() && next.elapsed_ns < reach_ns_max) {
    RunStretch& before = stretches_.back();
    const std::uint64_t idle_ns = since(before.elapsed_ns, before.busy_ns);
    if (idle_ns > excess_ns) {
      before.elapsed_ns -= excess_ns;
      next.elapsed_ns += excess_ns;
      return;
    }
    excess_ns = since(excess_ns, idle_ns != 0 ? idle_ns : before.elapsed_ns);
    next += before;
    stretches_.pop_back();
  }
}

void StretchTable::join_pairs() {
  for (std::size_t i = 0; i < count_max / 2; ++i) {
    stretches_[i] = stretches_[2 * i];
    stretches_[i] += stretches_[2 * i + 1];
  }
  stretches_.resize(count_max / 2);
  least_ns_ *= 2;
}

RunStretch ThreadSums::look(std::uint64_t elapsed_ns, const Threads& threads, std::uint64_t ran_ns,
                            std::uint64_t ended_wait_ns) {
  RunStretch stretch{.elapsed_ns = elapsed_ns};
  std::uint64_t alive_ran_ns = 0, known_ns = owed_ns_;
  for (const auto& [id, times] : threads) {
    const auto before = threads_.find(id);
    const ThreadTimes from = before == threads_.end() ? ThreadTimes{} : before->second;
    const std::uint64_t ran = since(times.ran_ns, from.ran_ns), waited = since(times.waited_ns, from.waited_ns);
    alive_ran_ns += ran;
    stretch.waited_ns += waited;
    stretch.busy_ns = std::max(stretch.busy_ns, ran + waited);
  }
  for (const auto& [id, times] : threads_) {
    if (!threads.contains(id)) known_ns += times.waited_ns;
  }
  // Threads that have ended, less what earlier looks had counted of them.
  const std::uint64_t ended_ns = ended_wait_ns - ended_wait_ns_;
  const std::uint64_t ended = since(ended_ns, known_ns);
  owed_ns_ = ended_ns == 0 ? 0 : since(known_ns, ended_ns);
  stretch.waited_ns += ended;
  stretch.ran_ns = since(ran_ns, ran_ns_);
  const std::uint64_t busy_of_ended_ns = std::min(since(stretch.ran_ns, alive_ran_ns) + ended, elapsed_ns);
  stretch.busy_ns = std::max(stretch.busy_ns, busy_of_ended_ns);
  threads_ = threads;
  ran_ns_ = ran_ns;
  ended_wait_ns_ = ended_wait_ns;
  if (has_looked_) return stretch;
  has_looked_ = true;
  return {.elapsed_ns = elapsed_ns};
}

RunTimes::RunTimes(const RingMemory& memory) : memory_(memory), looked_ns_(memory.start_facts().start_ns) { look(); }

void RunTimes::look() {
  const std::lock_guard lock(mutex_);
  look_locked();
}

void RunTimes::look_if_due(std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (now_ns >= due_ns_) look_locked();
}

std::vector<RunStretch> RunTimes::stretches() {
  const std::lock_guard lock(mutex_);
  look_locked();
  return table_.stretches();
}

/// While nothing runs, the threads are not read: what they wait is known when they run again.
void RunTimes::look_locked() {
  const std::uint64_t begin_ns = clock_ns(), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint32_t process = memory_.start_facts().process;
  const auto ran_ns = processor_time(process);
  if (!ran_ns) return;  // it has ended
  const std::uint64_t held_ns = __atomic_load_n(&memory_.control().held_ns, __ATOMIC_RELAXED);
  const std::uint64_t elapsed_ns = begin_ns - looked_ns_;
  if (*ran_ns == ran_ns_ && held_ns == held_ns_) {
    table_.add({.elapsed_ns = elapsed_ns});
  } else {
    const ThreadSums::Threads threads = read_threads(process);
    if (threads.empty()) return;  // ended meanwhile, or a kernel without schedstat
    RunStretch stretch =
        sums_.look(elapsed_ns, threads, *ran_ns, __atomic_load_n(&memory_.control().ended_wait_ns, __ATOMIC_RELAXED));
    stretch.held_ns = held_ns - held_ns_;
    table_.add(stretch, stretch.held_ns / threads.size());
  }
  ran_ns_ = *ran_ns;
  held_ns_ = held_ns;
  looked_ns_ = begin_ns;
  const std::uint64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  due_ns_ = begin_ns + std::max(StretchTable::stretch_ns_min, cost_ns * looks_share);
}

}  // namespace cmt::collector
