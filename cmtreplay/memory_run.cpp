// The worker stops at the start and at every mark, and is looked at from outside while it stands still.
//
// At the start everything of the replay's own is in place: operations, slots, code, stack. So what its smaps say then
// is the baseline, and every later figure is the difference. Where that goes below zero (an allocator gave back what it
// had taken while it was loaded) it is 0.
//
// Between marks there are moments that nobody sees. Writing 5 to clear_refs makes the kernel's high-water mark start
// anew, just before the first operation; at the end it tells the highest resident set since. Code of libraries that was
// loaded meanwhile is not the allocator's memory, so the growth of file pages goes off. Writing 1 clears the reference
// bits, and the pages referenced at the next mark are the working set. A huge page counts whole.
#include "cmtreplay/memory_run.h"

#include <algorithm>
#include <system_error>

#include "process/proc_file.h"
#include "process/status.h"

namespace cmt::replay {
namespace {

constexpr std::uint64_t page_bytes = 4096;

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
    referenced_ = clear_refs(pid_, "1");
    at_start_ = process::read_status(pid_);
    return {.start_bytes = first_.resident_bytes};
  }

  MarkSample at(const Mark& mark) {
    AllocatorMemory memory = look();
    memory.resident_bytes = difference(memory.resident_bytes, first_.resident_bytes);
    memory.huge_page_bytes = difference(memory.huge_page_bytes, first_.huge_page_bytes);
    memory.swapped_bytes = difference(memory.swapped_bytes, first_.swapped_bytes);
    MarkSample sample{.mark = mark, .memory = memory, .working_set_pages = {}};
    if (referenced_) sample.working_set_pages = memory.referenced_bytes / page_bytes;
    referenced_ = referenced_ && clear_refs(pid_, "1");
    return sample;
  }

  std::optional<std::uint64_t> peak_by_high_water() const {
    if (!high_water_) return std::nullopt;
    const process::Status now = process::read_status(pid_);
    const std::uint64_t before = at_start_.resident_bytes_peak - at_start_.resident_file_bytes;
    return difference(now.resident_bytes_peak, before + now.resident_file_bytes);
  }

 private:
  AllocatorMemory look() const { return allocator_memory(process::read_smaps(pid_), worker_); }

  pid_t pid_;
  std::string worker_;
  AllocatorMemory first_;
  process::Status at_start_;
  bool high_water_ = false;
  bool referenced_ = false;
};

}  // namespace

void run_memory(const Stage& stage, Result& result) {
  const std::vector<Mark>& marks = stage.trace.marks();
  Worker worker(stage, result.allocator, marks, nullptr);
  if ((result.death = worker.wait_for_stop())) return;
  Observer observer(worker.pid(), stage.worker);
  MemoryRun run = observer.start();
  for (const Mark& mark : marks) {
    worker.go();
    if ((result.death = worker.wait_for_stop())) return;
    run.marks.push_back(observer.at(mark));
    run.peak_at_marks_bytes = std::max(run.peak_at_marks_bytes, run.marks.back().memory.resident_bytes);
  }
  run.peak_by_high_water_bytes = observer.peak_by_high_water();
  result.memory = std::move(run);
}

}  // namespace cmt::replay
