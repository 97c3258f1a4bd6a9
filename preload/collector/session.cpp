// A session of the collector: starts the drainer, the watch thread, the page watcher and the clock thread, and runs the
// loop that gives the encoder its work. The hard part is when to encode: on an idle processor while the program runs,
// and at once if somebody waits.

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/drain/drainer.h"
#include "preload/collector/encoder.h"
#include "preload/collector/idle_worker.h"
#include "preload/collector/memory_group/memory_watch.h"
#include "preload/collector/pages/page_watcher.h"
#include "preload/collector/run_times.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t backlog_memory_max = 64 << 20, spill_max = std::uint64_t{4} << 30;
constexpr std::uint64_t second_ns = 1'000'000'000;

/// How far the trace may lag the program while no processor is idle. libcmttrace(1) states this bound.
constexpr std::uint64_t lag_ns_max = 20 * second_ns;

/// The bound of a file without a requested size: a quarter of the disk's free space.
std::uint64_t file_bytes_max(const std::string& folder) {
  struct statvfs disk {};
  const bool is_known = ::statvfs(folder.c_str(), &disk) == 0;
  return is_known ? std::min<std::uint64_t>(spill_max, disk.f_bavail * disk.f_frsize / 4) : spill_max;
}

/// The bound of the backlog's file.
std::uint64_t spill_bytes_max(const Settings& settings, const std::string& folder) {
  return settings.spill_bytes_max != Settings::no_limit ? settings.spill_bytes_max : file_bytes_max(folder);
}

/// Returns the watch of --keep-at.
std::unique_ptr<MemoryWatch> watch_of(const Settings& settings, const StartFacts& facts) {
  if (!settings.keep_at || !settings.keep.is_set()) return nullptr;
  const auto content = [](const std::string& path) {
    std::ifstream file(path);
    std::string text;
    std::getline(file, text, '\0');  // a process that ends meanwhile is no exception here
    return text;
  };
  const std::string process = "/proc/" + std::to_string(facts.process), own = "/proc/self";
  const std::string mounts = content(own + "/mountinfo");
  const std::string of_process = content(process + "/cgroup");
  auto groups = find_memory_groups(of_process, mounts);
  if (groups.empty()) groups = find_memory_groups(of_process, content(process + "/mountinfo"), process + "/root");
  return std::make_unique<MemoryWatch>(*settings.keep_at, std::move(groups),
                                       find_memory_groups(content(own + "/cgroup"), mounts), "/proc", facts.process,
                                       facts.start_ns);
}

/// The thread of --keep-at.
void run_memory_watch(RingMemory& memory, Backlog& backlog, SessionState& state) {
  while (!state.is_finished && state.process_end == ProcessEnd::none) {
    const bool is_pressed = state.memory->wait(state.finished_fd);
    if (state.process_end != ProcessEnd::none || !state.memory->look(clock_ns(), is_pressed)) continue;
    backlog.put({.type = WorkItem::Type::mark, .clock_ns = clock_ns()});
    memory.ring_bell();
  }
}

/// The environment's settings. If only a time is to be kept, the disk bounds the bytes.
Settings settings_for(const std::string& folder) {
  Settings settings;
  if (settings.keep.ns != 0 && settings.keep.bytes == 0)
    settings.keep.bytes = std::max<std::uint64_t>(file_bytes_max(folder), keep_bytes_min);
  return settings;
}

/// Takes work from the backlog, and has it encoded: by an idle thread, or at once by the calling thread if somebody
/// waits. For the reasons see "The collector" in doc/architecture.md. The calling thread has the usual priority. At
/// nice 10, on a machine with more work than processors, a trace took minutes instead of seconds.
class EncodeLoop {
 public:
  EncodeLoop(RingMemory& memory, Backlog& backlog, SessionState& state, Encoder& encoder)
      : memory_(memory), backlog_(backlog), state_(state), encoder_(encoder) {}

  /// Returns when the files are complete or cannot be continued. In the second case the program has its verdict.
  void run() {
    try {
      while (goes_on_) {
        if (is_worth_while()) encode(next_portion());
      }
    } catch (const OutputError& error) {
      encoder_.fail(error);
    }
    worker_.reset();
    state_.is_finished = true;
  }

 private:
  /// Items of the backlog. The last one may be a request.
  using Portion = std::vector<WorkItem>;

  /// The most work that an idle thread has begun when work becomes urgent: half a millisecond, or the records of one
  /// pass.
  static constexpr std::uint64_t portion_records = 4096;
  /// The least work for which an idle thread is woken.
  static constexpr std::uint64_t worth_records = 32768, worth_lag_ns = second_ns / 2;

  /// The least work for which a second thread is started.
  static constexpr std::uint64_t many_records = 1 << 18;

  static std::uint64_t records_in(const Portion& portion) {
    std::uint64_t records = 0;
    for (const WorkItem& item : portion) records += item.records.count;
    return records;
  }

  /// Waits for work. A short program's trace is encoded at its end, so that no idle thread holds work that it has not
  /// begun.
  bool is_worth_while() {
    const bool is_wanted = is_urgent({});
    const bool are_many =
        is_wanted ? backlog_.wait_for_records(0, 1000) : backlog_.wait_for_records(worth_records, 100);
    return is_wanted || are_many || lag_ns() > worth_lag_ns;
  }

  Portion next_portion() {
    Portion portion;
    std::uint64_t records = 0;
    for (auto item = backlog_.next_item(); item; item = backlog_.next_item()) {
      records += item->records.count;
      portion.push_back(std::move(*item));
      if (records >= portion_records || portion.back().is_request()) break;
    }
    return portion;
  }

  void encode(Portion portion) {
    constexpr int look_again_ms = 20;
    records_at_hand_ = records_in(portion) + begun_records_;
    while (worker_ && !worker_->wait(is_urgent(portion) ? hurry() : look_again_ms)) {
    }
    begun_.clear();
    begun_records_ = 0;
    if (!goes_on_ || portion.empty()) return;
    if (is_urgent(portion) || !has_worker()) {
      use_threads();
      handle(portion);
      report_progress();
    } else {
      begun_records_ = records_in(portion);
      assert(begun_.empty());
      begun_ = std::move(portion);
      worker_->start([this] { handle(begun_); });
    }
  }

  /// Returns for how long to wait for the worker.
  int hurry() {
    worker_->hurry();
    return 1000;
  }

  bool has_worker() {
    if (!worker_) worker_.emplace("encode-idle");
    return worker_->is_there();
  }

  void handle(Portion& portion) {
    state_.encode_thread = ::gettid();
    state_.encode_processor = ::sched_getcpu();
    for (WorkItem& item : portion) {
      goes_on_ = encoder_.handle(item);
      memory_.note_progress();
      if (!goes_on_) break;
    }
    state_.encode_processor = -1;
  }

  /// Whether somebody waits for the trace, or too much of it is missing.
  bool is_urgent(const Portion& portion) {
    const Encoder::Progress& progress = encoder_.progress();
    if (memory_.is_recoverable() || state_.process_end != ProcessEnd::none || state_.has_reader) return true;
    if (progress.is_flush_asked || progress.is_profile_asked || progress.is_mark_reached ||
        (!portion.empty() && portion.back().is_request()))
      return true;
    const Backlog::Waiting waiting = backlog_.waiting();
    if (waiting.requests != 0 || encoder_.is_near_limit(waiting.records + records_at_hand_)) return true;
    const bool is_too_far = lag_ns() > lag_ns_max || waiting.bytes > backlog_.bytes_max() / 2;
    is_lagging_ = is_too_far || (is_lagging_ && lag_ns() > second_ns);
    return is_lagging_;
  }

  std::uint64_t lag_ns() const {
    const std::uint64_t cut_ns = encoder_.progress().cut_ns, now_ns = clock_ns();
    return now_ns - std::min(cut_ns, now_ns);
  }

  /// When the program has ended, its processors are free. While the program runs, an idle thread must not own other
  /// threads: they would starve, and the thread that takes over would wait for them.
  void use_threads() {
    if (are_threads_used_ || state_.process_end == ProcessEnd::none) return;
    if (backlog_.waiting().records < many_records) return;
    encoder_.use_threads();
    are_threads_used_ = true;
  }

  /// Reports to cmttrace how much work is left, if the program has ended a while ago.
  void report_progress() {
    if (state_.process_end == ProcessEnd::none) return;
    const std::uint64_t now_ns = clock_ns();
    if (report_at_ns_ == 0) report_at_ns_ = now_ns + second_ns / 2;
    if (now_ns < report_at_ns_) return;
    report_at_ns_ = now_ns + second_ns / 2;
    append_status(memory_.start_facts(), "encoded=" + std::to_string(encoder_.progress().events) +
                                             " waiting=" + std::to_string(backlog_.waiting().records));
  }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  // Used by the worker while it works, else by this thread.
  Encoder& encoder_;
  Portion begun_;
  std::atomic<bool> goes_on_ = true;
  // This thread's own.
  std::optional<IdleWorker> worker_;  // exists since its first work
  std::uint64_t records_at_hand_ = 0, begun_records_ = 0;
  std::uint64_t report_at_ns_ = 0;
  bool is_lagging_ = false;
  bool are_threads_used_ = false;
};

}  // namespace

void run_session(RingMemory& memory, const std::vector<int>& outputs, int process_fd) {
  const StartFacts& facts = memory.start_facts();
  const std::string folder = (std::filesystem::path(".") / facts.paths[0]).parent_path();
  const Settings settings = settings_for(folder);
  memory.control().times = settings.has_times;
  std::optional<RunTimes> run_times;
  if (settings.has_times) run_times.emplace(memory);
  SessionState state{.finished_fd = ::eventfd(0, EFD_CLOEXEC), .run_times = run_times ? &*run_times : nullptr};
  const std::unique_ptr<MemoryWatch> memory_watch = watch_of(settings, facts);
  state.memory = memory_watch.get();
  Backlog backlog(folder, backlog_memory_max, spill_bytes_max(settings, folder));
  Encoder encoder(memory, backlog, state, outputs, settings);
  std::uint64_t drain_cpu_ns = 0;
  std::optional<LargeBlockHints> hints;
  if (facts.touched_min != 0) hints.emplace();
  if (settings.keep.is_set() || !facts.pprof_path.empty())
    append_status(facts, "collector=" + std::to_string(::getpid()) +
                             (memory_watch ? " watches=" + std::string(memory_watch->watched()) : ""));
  std::vector<std::thread> threads;
  try {
    threads.emplace_back(
        [&] { drain_cpu_ns = run_drainer(memory, backlog, state, outputs, hints ? &*hints : nullptr); });
    threads.emplace_back([&] { run_watcher(memory, backlog, state, process_fd, outputs, settings); });
    if (hints) threads.emplace_back([&] { run_page_watcher(memory, backlog, state, *hints); });
    if (memory_watch) threads.emplace_back([&] { run_memory_watch(memory, backlog, state); });
    if (settings.time_step_ns != 0) threads.emplace_back([&] { run_clock(memory, state, settings.time_step_ns); });
    EncodeLoop(memory, backlog, state, encoder).run();
  } catch (const std::system_error& error) {  // a limit allows no more threads
    encoder.fail(OutputError(facts.paths[0], error.code().value()));
    state.is_finished = true;
  }
  ::eventfd_write(state.finished_fd, 1);
  memory.ring_bell();
  for (std::thread& thread : threads) thread.join();
  ::close(state.finished_fd);
  if (facts.has_made_control) ::unlink(facts.control_path.c_str());
  if (memory.is_recoverable() && !encoder.has_failed())
    ::unlink(facts.rings_path.c_str());  // after a failure --recover needs the file
  encoder.report(drain_cpu_ns);
}

void run_ended_session(RingMemory& memory, const std::vector<int>& outputs, const Settings& settings,
                       SessionState& state) {
  assert(state.process_end != ProcessEnd::none);
  const std::string folder = std::filesystem::path(memory.start_facts().paths[0]).parent_path();
  Backlog backlog(folder, backlog_memory_max, spill_bytes_max(settings, folder));
  Encoder encoder(memory, backlog, state, outputs, settings);
  try {
    Drainer drainer(memory, backlog);
    // The process writes no more; so this is a bound for memory that another one has.
    for (int passes = 0; passes < 64 && (drainer.pass(true) != std::size_t{0} || drainer.skip_unpublished());) ++passes;
    backlog.put({.type = WorkItem::Type::end});
    for (auto item = backlog.next_item(); item && encoder.handle(*item); item = backlog.next_item()) {
    }
  } catch (const OutputError& error) {
    encoder.fail(error);
  }
  encoder.report(0);
}

}  // namespace cmt::collector
