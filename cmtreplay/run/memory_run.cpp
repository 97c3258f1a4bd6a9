// The worker stops at the start and at every mark, and is looked at from outside while it stands still.
//
// At the start everything of the replay's own is in place: operations, slots, code, stack. So what its smaps say then
// is the baseline, and every later figure is the difference. Where that goes below zero (an allocator gave back what it
// had taken while it was loaded) it is 0.
//
// Between marks there are moments that nobody sees. Writing 5 to clear_refs makes the kernel's high-water mark start
// anew, just before the first operation; at the end it tells the highest resident set since. Code of libraries that was
// loaded meanwhile is not the allocator's memory, so the growth of file pages goes off. Writing 1 clears the reference
// bits, and the pages referenced at the next mark are the working set. A huge page counts whole. Where the kernel has a
// bitmap of idle pages that is taken instead (process/page_idle.h), by the first frame of a huge page for all of it. A
// timeline of resident memory alone goes on meanwhile (timeline.h).
//
// One mark is where most bytes are live: resident memory there over live bytes is the fragmentation, and usable bytes
// less requested ones the slop. After the end everything that is still live is freed, and what stays is the allocator's
// own: the drain.
#include "cmtreplay/run/memory_run.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>

#include "toolkit/process/page_frames.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::replay {
namespace {

constexpr std::uint64_t walked_bytes_max = std::uint64_t{64} << 30;

std::uint64_t difference(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

/// False where the kernel does not let us: a container may mount /proc read-only.
bool clear_refs(pid_t pid, const char* what) {
  try {
    process::write_file(process::path_of(pid, "clear_refs"), what);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

/// Looks at one worker.
class Observer {
 public:
  Observer(pid_t pid, std::string worker) : pid_(pid), worker_(std::move(worker)) {}

  MemoryRun start() {
    first_ = look();
    high_water_ = clear_refs(pid_, "5");
    start_working_set();
    at_start_ = process::read_status(pid_);
    faults_at_start_ = process::read_stat(pid_);
    return {.start_bytes = first_.resident_bytes};
  }

  MarkSample at(const Mark& mark) {
    AllocatorMemory memory = look();
    memory.resident_bytes = difference(memory.resident_bytes, first_.resident_bytes);
    memory.huge_page_bytes = difference(memory.huge_page_bytes, first_.huge_page_bytes);
    memory.swapped_bytes = difference(memory.swapped_bytes, first_.swapped_bytes);
    memory.anonymous_bytes = difference(memory.anonymous_bytes, first_.anonymous_bytes);
    const process::Stat stat = process::read_stat(pid_);
    MarkSample sample{.mark = mark,
                      .memory = memory,
                      .minor_faults = stat.minor_faults - faults_at_start_.minor_faults,
                      .major_faults = stat.major_faults - faults_at_start_.major_faults,
                      .usable_bytes = {},
                      .working_set_pages = {}};
    sample.working_set_pages = working_set(memory);
    return sample;
  }

  std::uint64_t resident_bytes() { return difference(look().resident_bytes, first_.resident_bytes); }

  std::optional<std::uint64_t> peak_by_high_water() const {
    if (!high_water_) return std::nullopt;
    const process::Status now = process::read_status(pid_);
    const std::uint64_t before = at_start_.resident_bytes_peak - at_start_.resident_file_bytes;
    return difference(now.resident_bytes_peak, before + now.resident_file_bytes);
  }

 private:
  AllocatorMemory look() {
    mappings_ = process::read_smaps(pid_);
    return allocator_memory(mappings_, worker_);
  }

  /// By the bitmap of idle pages where it works here, which the first frames show; else by clear_refs.
  void start_working_set() {
    kinds_ = idle_.available() && flags_.available() ? allocator_frames() : std::vector<process::FrameKind>();
    by_idle_ = !kinds_.empty();
    if (by_idle_)
      idle_.set(process::heads_of(kinds_));
    else
      referenced_ = clear_refs(pid_, "1");
  }

  /// Pages that came since the last mark were never marked, and so count as touched.
  std::optional<std::uint64_t> working_set(const AllocatorMemory& memory) {
    std::optional<std::uint64_t> pages;
    if (by_idle_) {
      kinds_ = allocator_frames();
      pages = idle_.touched(kinds_);
      idle_.set(process::heads_of(kinds_));
      return pages;
    }
    if (referenced_) pages = memory.referenced_bytes / page_bytes;
    referenced_ = referenced_ && clear_refs(pid_, "1");
    return pages;
  }

  /// But of address ranges that are reserved by the terabyte: their page tables take seconds to walk.
  std::vector<process::FrameKind> allocator_frames() {
    std::vector<std::uint64_t> all;
    for (const process::Mapping& mapping : allocator_mappings(mappings_, worker_)) {
      const bool walkable = mapping.resident_bytes != 0 && mapping.end - mapping.begin <= walked_bytes_max;
      if (!walkable) continue;
      const auto some = process::frames(pid_, mapping.begin, mapping.end);
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end());
    return flags_.kinds(all);
  }

  pid_t pid_;
  std::string worker_;
  std::vector<process::Mapping> mappings_;
  process::PageIdle idle_;
  process::PageFlags flags_;
  std::vector<process::FrameKind> kinds_;
  AllocatorMemory first_;
  process::Status at_start_;
  process::Stat faults_at_start_;
  bool high_water_ = false;
  bool referenced_ = false;
  bool by_idle_ = false;
};

/// The slots whose blocks are to be freed after the end, as the worker takes them.
std::unique_ptr<SharedMemory> drain_list(const PreparedTrace& trace) {
  const std::uint64_t bytes = trace.end_slots().size() * sizeof(std::uint32_t);
  auto memory = std::make_unique<SharedMemory>("drain", bytes);
  if (bytes == 0) return memory;
  void* const list = map_shared(memory->fd(), bytes);
  std::memcpy(list, trace.end_slots().data(), bytes);
  unmap_shared(list, bytes);
  return memory;
}

std::optional<std::uint64_t> usable_bytes(const Worker& worker) {
  const std::uint64_t bytes = __atomic_load_n(&worker.results().get().usable_bytes, __ATOMIC_RELAXED);
  return bytes == unknown_usable ? std::nullopt : std::optional(bytes);
}

}  // namespace

void run_memory(const Stage& stage, Result& result) {
  const auto drain = drain_list(stage.trace);
  Worker worker(stage, result.allocator, {.counts_usable = true, .drain = drain.get()});
  if ((result.death = worker.wait_until_ready())) return;
  Observer observer(worker.pid(), stage.worker);
  MemoryRun run = observer.start();
  Timeline timeline(worker.pid());
  std::uint64_t event = 0;
  for (const Mark& mark : stage.trace.marks()) {
    timeline.go(event);
    if ((result.death = worker.advance(mark))) return;
    timeline.stop();
    run.marks.push_back(observer.at(mark));
    run.marks.back().clock_ns = timeline.clock_ns();
    run.marks.back().usable_bytes = usable_bytes(worker);
    run.peak_at_marks_bytes = std::max(run.peak_at_marks_bytes, run.marks.back().memory.resident_bytes);
    event = mark.event;
  }
  if ((result.death = worker.finish())) return;
  run.peak_by_high_water_bytes = observer.peak_by_high_water();
  if ((result.death = worker.drain())) return;
  run.drained_bytes = observer.resident_bytes();
  run.timeline = timeline.samples();
  run.timeline_cpu_ns = timeline.cpu_ns();
  result.memory = std::move(run);
}

}  // namespace cmt::replay
