// Reads the memory of a worker from /proc/PID, and subtracts the baseline: the smaps of a worker with the null
// allocator before its first operation. So memory that an allocator took before its first call counts. A difference
// below zero counts as 0.
//
// Writing 5 to clear_refs just before the first operation resets the kernel's high-water mark. Code of libraries that
// was loaded in the meantime is not the allocator's memory, so the growth of file pages is subtracted.
//
// Writing 1 to clear_refs clears the reference bits. The pages that are referenced at the next mark are the working
// set; a huge page counts whole. If the kernel has a bitmap of idle pages, that is used instead
// (toolkit/process/page_frames.h). The first frame of a huge page then counts for the whole page.
//
// The name of a mapping in /proc/PID/smaps says whose memory it is:
//
//   none, [heap], [anon:...]         the allocator's (and the .bss of libraries, which stays as it was)
//
//   [stack], [vdso], [vvar] ...      the worker's
//   /memfd:cmtreplay-...             the replay's
//   the worker's executable          the worker's
//
//   other files, mapped private      pages that were written are anonymous copies: the allocator's .data
//   /dev/shm, /memfd:, /dev/zero,    shared memory that the allocator hands out
//   /SYSV..., mapped shared
//
//   other files, mapped shared       the page cache's
#include "cmtreplay/run/memory_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>

#include "cmtreplay/run/statistics.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/page_frames.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::replay {
namespace {

bool is_shared_memory(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes{"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"};
  return std::any_of(prefixes.begin(), prefixes.end(), [name](auto prefix) { return name.starts_with(prefix); });
}

bool is_anonymous(const process::Mapping& mapping) {
  return mapping.name.empty() || mapping.name == "[heap]" || mapping.name.starts_with("[anon");
}

void add_mapping(AllocatorMemory& memory, const process::Mapping& mapping, std::uint64_t resident_bytes) {
  memory.resident_bytes += resident_bytes;
  memory.anonymous_bytes += std::min(mapping.anonymous_bytes, resident_bytes);
  memory.referenced_bytes += std::min(mapping.referenced_bytes, resident_bytes);
  memory.lazy_free_bytes += mapping.lazy_free_bytes;
  memory.huge_page_bytes += mapping.huge_page_bytes;
  memory.swapped_bytes += mapping.swapped_bytes;
}

/// Whether a mapping is the replay's or the kernel's.
bool is_other(const process::Mapping& mapping, const std::string& worker) {
  const bool is_replays = mapping.name.starts_with(shared_memory_prefix) || mapping.name == worker;
  return is_replays || (mapping.name.starts_with("[") && !is_anonymous(mapping));
}

/// Whether all pages of a mapping are the allocator's. In a library's mapping only the written pages are.
bool is_wholly_allocators(const process::Mapping& mapping) {
  return is_anonymous(mapping) || (mapping.shared() && is_shared_memory(mapping.name));
}

constexpr std::uint64_t walked_bytes_max = std::uint64_t{64} << 30;
constexpr std::size_t read_pages_max = 512;

std::uint64_t difference(std::uint64_t now, std::uint64_t before) { return now > before ? now - before : 0; }

/// Writes to clear_refs. Returns false if that is not allowed: a container may mount /proc read-only.
bool clear_refs(pid_t pid, const char* what) {
  try {
    process::write_file(process::path_of(pid, "clear_refs"), what);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

/// How many of the first pages are adjacent, as far as they are read at once.
std::size_t adjacent_pages(std::span<const process::ResidentPage> pages) {
  std::size_t count = 1;
  while (count < std::min(pages.size(), read_pages_max) && pages[count].page == pages[0].page + count) ++count;
  return count;
}

/// Reads the memory of one worker.
class MemoryProbe {
 public:
  MemoryProbe(pid_t pid, std::string worker, const std::optional<AllocatorMemory>& baseline)
      : pid_(pid), worker_(std::move(worker)), baseline_(baseline ? *baseline : read_memory()) {}

  MemoryRun start() {
    start_bytes_ = resident_bytes();
    high_water_ = clear_refs(pid_, "5");
    start_working_set();
    at_start_ = process::read_status(pid_);
    faults_at_start_ = process::read_stat(pid_);
    return {.baseline = baseline_, .start_bytes = start_bytes_};
  }

  MarkSample measure(const Mark& mark) {
    AllocatorMemory memory = read_memory();
    memory.resident_bytes = difference(memory.resident_bytes, baseline_.resident_bytes);
    memory.huge_page_bytes = difference(memory.huge_page_bytes, baseline_.huge_page_bytes);
    memory.swapped_bytes = difference(memory.swapped_bytes, baseline_.swapped_bytes);
    memory.anonymous_bytes = difference(memory.anonymous_bytes, baseline_.anonymous_bytes);
    const process::Stat stat = process::read_stat(pid_);
    return {.mark = mark,
            .memory = memory,
            .minor_faults = stat.minor_faults - faults_at_start_.minor_faults,
            .major_faults = stat.major_faults - faults_at_start_.major_faults,
            .usable_bytes = {},
            .working_set_pages = working_set(memory)};
  }

  /// Resident pages that hold only zeros, after measure(). Empty if the worker's memory cannot be read. Reading
  /// sets their reference bits, so these are cleared again for the next mark's working set.
  std::optional<std::uint64_t> zero_bytes() {
    const std::optional<std::uint64_t> bytes = count_zeros();
    working_set({});
    return bytes;
  }

  std::uint64_t resident_bytes() { return difference(read_memory().resident_bytes, baseline_.resident_bytes); }

  std::optional<std::uint64_t> peak_by_high_water() const {
    if (!high_water_) return std::nullopt;
    const process::Status now = process::read_status(pid_);
    const std::uint64_t before = at_start_.resident_bytes_peak - at_start_.resident_file_bytes;
    return start_bytes_ + difference(now.resident_bytes_peak, before + now.resident_file_bytes);
  }

 private:
  AllocatorMemory read_memory() {
    mappings_ = process::read_smaps(pid_);
    return allocator_memory(mappings_, worker_);
  }

  /// Uses the bitmap of idle pages if that works here, else clear_refs.
  void start_working_set() {
    try {
      kinds_ = idle_.available() && flags_.available() ? allocator_frames() : std::vector<process::FrameKind>();
      idle_.set(process::heads_of(kinds_));
      by_idle_ = !kinds_.empty();
    } catch (const std::system_error&) {  // a bitmap that can be opened need not be readable
      by_idle_ = false;
    }
    if (!by_idle_) referenced_ = clear_refs(pid_, "1");
  }

  /// The pages that were referenced since the last mark. New pages were never set idle, and so count.
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

  std::optional<std::uint64_t> count_zeros() const {
    const process::Fd memory(open(process::path_of(pid_, "mem").c_str(), O_RDONLY | O_CLOEXEC));
    if (memory.get() < 0) return std::nullopt;
    static constexpr std::array<std::uint8_t, page_bytes> zeros{};
    std::vector<std::uint8_t> bytes(read_pages_max * page_bytes);
    std::uint64_t zero_bytes = 0;
    for (const process::Mapping& mapping : mappings_) {
      if (!is_walked(mapping)) continue;
      const auto pages = process::resident_pages(pid_, mapping.begin, mapping.end);
      for (std::size_t i = 0, count = 0; i < pages.size(); i += count) {
        count = adjacent_pages(std::span(pages).subspan(i));
        const auto at = static_cast<off_t>(pages[i].page * page_bytes);
        if (pread(memory.get(), bytes.data(), count * page_bytes, at) != static_cast<ssize_t>(count * page_bytes))
          return std::nullopt;
        for (std::size_t page = 0; page < count; ++page)
          zero_bytes += std::memcmp(&bytes[page * page_bytes], zeros.data(), page_bytes) == 0 ? page_bytes : 0;
      }
    }
    return zero_bytes;
  }

  /// Whether all resident pages of a mapping are the allocator's, and can be looked at. The page tables of an address
  /// range of terabytes take seconds to walk.
  bool is_walked(const process::Mapping& mapping) const {
    const bool walkable = mapping.resident_bytes != 0 && mapping.end - mapping.begin <= walked_bytes_max;
    return walkable && !is_other(mapping, worker_) && is_wholly_allocators(mapping);
  }

  /// The frames of the allocator's pages.
  std::vector<process::FrameKind> allocator_frames() {
    std::vector<std::uint64_t> all;
    for (const process::Mapping& mapping : mappings_) {
      if (!is_walked(mapping)) continue;
      const auto some = process::frames(pid_, mapping.begin, mapping.end);
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end());
    return idle_.kinds(flags_, all);
  }

  pid_t pid_;
  std::string worker_;
  std::vector<process::Mapping> mappings_;
  process::PageIdle idle_;
  process::PageFlags flags_;
  std::vector<process::FrameKind> kinds_;
  AllocatorMemory baseline_;
  std::uint64_t start_bytes_ = 0;
  process::Status at_start_;
  process::Stat faults_at_start_;
  bool high_water_ = false;
  bool referenced_ = false;
  bool by_idle_ = false;
};

/// The slots whose blocks the worker frees after the end.
std::unique_ptr<SharedMemory> drain_list(const PreparedTrace& trace) {
  const std::uint64_t bytes = trace.plan().end_slots.size() * sizeof(std::uint32_t);
  auto memory = std::make_unique<SharedMemory>("drain", bytes);
  if (bytes == 0) return memory;
  std::memcpy(MappedMemory(*memory, bytes).begin(), trace.plan().end_slots.data(), bytes);
  return memory;
}

RunOptions run_options(const SharedMemory& drain, std::uint32_t number) {
  return {.counts_usable = true, .small = true, .drain = &drain, .memory = true, .address_shift = number};
}

std::optional<std::uint64_t> usable_bytes(const WorkerProcess& worker) {
  const std::uint64_t bytes = __atomic_load_n(&worker.results().get().usable_bytes, __ATOMIC_RELAXED);
  return bytes == unknown_usable ? std::nullopt : std::optional(bytes);
}

bool is_of_time(const MarkSample& sample) { return sample.mark.next_ns != unknown; }

/// A figure over time, or over events. A state lasts until the next event, if that is known.
template <class Figure>
MeanOverTime mean_of_marks(const std::vector<MarkSample>& marks, bool has_times, std::uint64_t at_start,
                           Figure figure) {
  MeanOverTime mean{.last = at_start};
  std::uint64_t before = 0;
  bool is_first = has_times;  // the time of the first event is not 0
  for (const MarkSample& sample : marks) {
    const std::uint64_t now = has_times ? sample.mark.time_ns : sample.mark.event;
    mean.add(is_first || now == unknown ? 0 : static_cast<double>(difference(now, before)), figure(sample));
    before = has_times && is_of_time(sample) ? sample.mark.next_ns : now;
    mean.add(static_cast<double>(difference(before, now)), figure(sample));
    is_first = false;
  }
  return mean;
}

/// The least-squares slope of `y` over `x`, but at least 0 and at most 1.
template <class X, class Y>
double slope(const std::vector<MarkSample>& marks, X x, Y y) {
  double mean_x = 0, mean_y = 0, products = 0, squares = 0;
  for (const MarkSample& sample : marks) {
    mean_x += static_cast<double>(x(sample)) / static_cast<double>(marks.size());
    mean_y += static_cast<double>(y(sample)) / static_cast<double>(marks.size());
  }
  for (const MarkSample& sample : marks) {
    const double from_mean = static_cast<double>(x(sample)) - mean_x;
    products += from_mean * (static_cast<double>(y(sample)) - mean_y);
    squares += from_mean * from_mean;
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 1.0) : 0;
}

/// Resident bytes over live bytes. NaN if there are no live bytes.
double over_live(std::uint64_t resident_bytes, std::uint64_t live_bytes) {
  if (live_bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(resident_bytes) / static_cast<double>(live_bytes);
}

}  // namespace

std::optional<std::uint64_t> MarkSample::slop_bytes() const {
  if (!usable_bytes || *usable_bytes < mark.live.bytes) return std::nullopt;
  return *usable_bytes - mark.live.bytes;
}

std::uint64_t MemoryRun::peak_bytes() const {
  return std::max(peak_at_marks_bytes, peak_by_high_water_bytes.value_or(0));
}

std::string MemoryRun::peak_text() const {
  return (peak_by_high_water_bytes ? "" : ">= ") + output::bytes_text(peak_bytes());
}

const MarkSample* MemoryRun::at_event(std::uint64_t event) const {
  const auto found = std::find_if(marks.begin(), marks.end(),
                                  [event](const MarkSample& sample) { return sample.mark.event == event; });
  return found == marks.end() ? nullptr : &*found;
}

const MarkSample* MemoryRun::at_peak_live() const { return at_event(peak_live_event); }

double MemoryRun::fragmentation() const {
  const MarkSample* const peak = at_peak_live();
  if (!peak || !holds_all) return std::numeric_limits<double>::quiet_NaN();
  return over_live(peak->memory.resident_bytes, peak_live_bytes - peak->mark.untouched_bytes);
}

double MemoryRun::peak_over_peak_live() const {
  return holds_all ? over_live(peak_bytes(), peak_touched_bytes) : std::numeric_limits<double>::quiet_NaN();
}

std::uint64_t MemoryRun::mean_bytes() const {
  const auto resident = [](const MarkSample& sample) { return sample.memory.resident_bytes; };
  const auto touched = [](const MarkSample& sample) {
    return difference(sample.mark.live.bytes, sample.mark.untouched_bytes);
  };
  const bool has_times = !marks.empty() && marks.back().mark.time_ns != unknown;
  if (!has_times || std::none_of(marks.begin(), marks.end(), is_of_time))
    return mean_of_marks(marks, has_times, start_bytes, resident).mean();
  std::vector<MarkSample> of_time;
  for (const MarkSample& sample : marks) {
    if (is_of_time(sample) || &sample == &marks.back()) of_time.push_back(sample);
  }
  const std::uint64_t mean = mean_of_marks(of_time, true, start_bytes, resident).mean();
  if (!mean_touched_bytes) return mean;
  const std::uint64_t seen_bytes = mean_of_marks(of_time, true, 0, touched).mean();
  const double missed = static_cast<double>(*mean_touched_bytes) - static_cast<double>(seen_bytes);
  return static_cast<std::uint64_t>(
      std::max(0.0, static_cast<double>(mean) + slope(of_time, touched, resident) * missed));
}

std::uint64_t MemoryRun::end_bytes() const { return marks.empty() ? 0 : marks.back().memory.resident_bytes; }

std::uint64_t MemoryRun::before_teardown_bytes() const {
  const MarkSample* const found = at_event(before_teardown_event);
  return found ? found->memory.resident_bytes : end_bytes();
}

AllocatorMemory memory_at_start(const ReplaySettings& settings, const Allocator& allocator) {
  const auto drain = drain_list(settings.trace);
  WorkerProcess worker(settings, allocator, run_options(*drain, 0));
  worker.wait_until_ready();
  return allocator_memory(process::read_smaps(worker.pid()), settings.worker);
}

MemoryRun run_memory(const ReplaySettings& settings, const Allocator& allocator,
                     const std::optional<AllocatorMemory>& baseline, std::uint32_t number) {
  const auto drain = drain_list(settings.trace);
  WorkerProcess worker(settings, allocator, run_options(*drain, number));
  worker.wait_until_ready();
  MemoryProbe probe(worker.pid(), settings.worker, baseline);
  MemoryRun run = probe.start();
  run.peak_live_bytes = settings.trace.plan().facts.peak_live.bytes;
  run.mean_touched_bytes = settings.trace.plan().facts.mean_touched_bytes;
  run.peak_touched_bytes = settings.trace.plan().facts.peak_touched_bytes;
  run.peak_live_event = settings.trace.plan().facts.peak_live_bytes_event;
  run.before_teardown_event = settings.trace.plan().facts.before_teardown_event;
  Timeline timeline(worker.pid(), run.start_bytes);
  std::uint64_t event = 0;
  for (const Mark& mark : settings.trace.plan().marks) {
    timeline.resume(event);
    worker.run_until(mark);
    timeline.pause();
    run.marks.push_back(probe.measure(mark));
    run.marks.back().clock_ns = timeline.clock_ns();
    run.marks.back().usable_bytes = usable_bytes(worker);
    if (mark.event == run.peak_live_event && run.marks.back().memory.huge_page_bytes != 0)
      run.zero_bytes = probe.zero_bytes();
    run.peak_at_marks_bytes = std::max(run.peak_at_marks_bytes, run.marks.back().memory.resident_bytes);
    event = mark.event;
  }
  worker.run_to_end();
  const control& control = worker.results().get();
  run.reads_clock = control.clock_read != 0;
  run.has_recorded_clock = control.clock_recorded != 0;
  if (control.stamps_watched != 0) run.reads_stamps = control.stamps_read != 0;
  run.clock_strays = control.clock_strays;
  run.peak_by_high_water_bytes = probe.peak_by_high_water();
  const std::string& touch = settings.options.touch;
  const auto refuses = [](const lane& lane) { return lane.refused != 0; };
  const auto lanes = worker.results().lanes();
  run.holds_all =
      allocator.null || ((touch == "page" || touch == "all") && std::none_of(lanes.begin(), lanes.end(), refuses));
  worker.drain();
  run.drained_bytes = probe.resident_bytes();
  run.timeline = timeline.samples();
  run.timeline_cpu_ns = timeline.cpu_ns();
  return run;
}

AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker) {
  AllocatorMemory memory;
  for (const process::Mapping& mapping : mappings) {
    if (is_other(mapping, worker)) continue;
    if (is_wholly_allocators(mapping))
      add_mapping(memory, mapping, mapping.resident_bytes);
    else if (!mapping.shared())
      add_mapping(memory, mapping, mapping.anonymous_bytes);
  }
  return memory;
}

}  // namespace cmt::replay
