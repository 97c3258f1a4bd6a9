// Maps the shared memory, checks that it is sound, and reads slots. After each line that it has read, it flushes the
// line from the caches, so that the program's next write is cheap.

#include "preload/collector/drain/ring_memory.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <span>
#include <system_error>

#if defined __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "cmt/error.h"
#include "preload/processor.h"

namespace cmt::collector {

namespace {

constexpr std::uint64_t line_slots = 64 / slot_bytes;

#if defined __x86_64__
bool knows_clflushopt() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

const bool has_clflushopt = knows_clflushopt();

/// Flushes a line of memory from all caches (protocol.h says why).
void flush_line(const Slot* line) {
  if (has_clflushopt)
    __asm__ volatile("clflushopt %0" : : "m"(*line));
  else
    _mm_clflush(line);
}
#else
void flush_line(const Slot*) {}  // on other processors a flush would only cost the program time
#endif

/// Copies the data of a file to memory of zeros. A hole takes no memory there, and neither do zeros.
void copy_data(int fd, char* to, std::uint64_t bytes, const std::string& path) {
  constexpr std::uint64_t part = 64 * 1024;
  std::vector<char> buffer(part);
  for (std::uint64_t at = 0; at < bytes;) {
    const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;  // there is only a hole
    if (data > 0) at = static_cast<std::uint64_t>(data);
    const ssize_t got = ::pread(fd, buffer.data(), std::min(part, bytes - std::min(at, bytes)), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), path);
    if (got == 0) return;  // it has become shorter
    const std::span<const char> read(buffer.data(), static_cast<std::size_t>(got));
    if (std::ranges::any_of(read, [](char byte) { return byte != 0; })) std::ranges::copy(read, to + at);
    at += static_cast<std::uint64_t>(got);
  }
}

/// A private mapping of a file is no copy: to read a hole of it, a tmpfs needs a page, and a full one sends SIGBUS.
void* map_copy(int fd, std::uint64_t bytes, const std::string& path) {
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return begin;
  try {
    copy_data(fd, static_cast<char*>(begin), bytes, path);
  } catch (...) {
    ::munmap(begin, bytes);
    throw;
  }
  return begin;
}

}  // namespace

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t clock_stamp(const StartFacts& facts) {
  return facts.clock_is_ns ? clock_ns() >> stamp_shift : processor_stamp(true);
}

RingMemory::RingMemory(int fd, Access access, const std::string& path, const Control* description) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw std::system_error(errno, std::generic_category(), path);
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  if (bytes_ < sizeof(Control)) throw FormatError(path, "holds no rings");
  void* begin = access == Access::shared
                    ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
                    : map_copy(fd, bytes_, path);
  if (begin == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
  control_ = static_cast<Control*>(begin);
  std::optional<StartFacts> facts;
  if (std::memcmp(control_->magic, ring_magic, sizeof control_->magic) == 0)
    facts = StartFacts::read(description != nullptr ? *description : *control_);
  const bool is_rings = facts.has_value();
  if (is_rings) facts_ = *std::move(facts);
  if (is_rings && access == Access::shared) facts_.convert_start();
  if (is_rings && rings_control_bytes(facts_.rings_limit) <= bytes_) return;
  ::munmap(begin, bytes_);
  throw FormatError(path, is_rings ? "is cut off in the table of its rings" : "holds no rings");
}

RingMemory::~RingMemory() {
  if (!is_owner_) return;
  ::munmap(control_, bytes_);
  ::close(fd_);
}

std::uint32_t RingMemory::ring_count() const {
  return std::min(__atomic_load_n(&control_->rings_used, __ATOMIC_ACQUIRE), facts_.rings_limit);
}

const StackShare* RingMemory::stack_share() const {
  const std::uint64_t at = facts_.stacks_at;
  const bool is_there =
      at != 0 && at % alignof(StackShare) == 0 && bytes_ >= sizeof(StackShare) && at <= bytes_ - sizeof(StackShare);
  return is_there ? reinterpret_cast<const StackShare*>(reinterpret_cast<const char*>(control_) + at) : nullptr;
}

// A read through the mapping would back the first page with memory in a recording without an interpreter.
InterpreterCounts RingMemory::interpreter_counts() const {
  constexpr std::size_t head_bytes = offsetof(InterpreterFrames, frame);
  alignas(InterpreterFrames) char bytes[head_bytes];
  const std::uint64_t at = facts_.stacks_at + offsetof(StackShare, interpreter);
  if (stack_share() == nullptr || ::pread(fd_, bytes, head_bytes, static_cast<off_t>(at)) != ssize_t{head_bytes})
    return {};
  InterpreterCounts counts;
  std::uint32_t used = 0;
  std::memcpy(&used, bytes + offsetof(InterpreterFrames, used), sizeof used);
  std::memcpy(&counts.unplaced, bytes + offsetof(InterpreterFrames, unplaced), sizeof counts.unplaced);
  std::memcpy(&counts.nameless, bytes + offsetof(InterpreterFrames, nameless), sizeof counts.nameless);
  counts.named = used == 0 ? 0 : std::min<std::uint32_t>(used, interpreter_frames_max) - 1;
  return counts;
}

std::uint64_t RingMemory::lost_events() {
  std::uint64_t sum = __atomic_load_n(&control_->ringless, __ATOMIC_RELAXED);
  for (std::uint32_t i = 0; i < ring_count(); ++i) sum += ring(i).lost;
  return sum;
}

RingMemory::Slots RingMemory::slots_of(const Ring& ring) const {
  const Slots slots{__atomic_load_n(&ring.slots_at, __ATOMIC_RELAXED), __atomic_load_n(&ring.slots, __ATOMIC_RELAXED)};
  const bool are_there = slots.count <= bytes_ / slot_bytes && slots.at <= bytes_ - slots.count * slot_bytes &&
                         slots.at % slot_bytes == 0 && (slots.count & (slots.count - 1)) == 0;
  return are_there ? slots : Slots{};
}

std::size_t RingMemory::read(const Ring& ring, std::uint64_t from, std::uint64_t count_max, Packer& out,
                             std::vector<Slot>* blocks) const {
  const Slots own = slots_of(ring);
  if (own.count == 0) return 0;
  const Slot* const slots = slots_at(own.at);
  std::uint64_t position = from;
  return out.append_while(std::min(own.count, count_max), [&](Slot& record) {
    const Slot& slot = slots[position & (own.count - 1)];
    if (!slot_is_published(&slot, position++, own.count)) return false;
    record = slot;
    if (slot_kind(record.head) == record_block && blocks != nullptr) blocks->push_back(record);
    if ((position & (line_slots - 1)) == 0) flush_line(&slot);
    return true;
  });
}

std::size_t RingMemory::skip_unpublished(const Ring& ring, std::uint64_t from, std::uint64_t end, Packer& out) const {
  const auto [at, count] = slots_of(ring);
  if (count == 0) return 0;
  const Slot* const slots = slots_at(at);
  end = std::min({end, ring.reserved, from + count});
  std::uint64_t published = from;
  while (published < end && !slot_is_published(&slots[published & (count - 1)], published, count)) ++published;
  if (published >= end) return 0;
  for (std::uint64_t i = from; i < published; ++i) out.append(record_void, 0);
  return published - from;
}

/// Calls fallocate(2) for the slots between two positions: twice if the ring's end is between them.
bool RingMemory::change_pages(const Ring& ring, std::uint64_t from, std::uint64_t to, int mode) const {
  const auto [at, slots] = slots_of(ring);
  bool is_done = slots != 0;
  if (to - from >= slots) {
    from = 0;
    to = slots;
  }
  while (from < to) {
    const std::uint64_t first = from & (slots - 1), count = std::min(to - from, slots - first);
    assert(count != 0);
    const auto offset = static_cast<off_t>(at + first * slot_bytes);
    int status;
    do status = ::fallocate(fd_, mode, offset, static_cast<off_t>(count * slot_bytes));
    while (status != 0 && errno == EINTR);
    if (status != 0 && errno != EOPNOTSUPP) is_done = false;  // EOPNOTSUPP: the file system cannot reserve memory
    from += count;
  }
  return is_done;
}

void RingMemory::release(const Ring& ring, std::uint64_t from, std::uint64_t to) const {
  constexpr std::uint64_t page = 4096 / slot_bytes;
  from = (from + page - 1) & ~(page - 1);
  to &= ~(page - 1);
  if (from < to) change_pages(ring, from, to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

void RingMemory::raise_clock(std::uint64_t stamp) {
  std::uint64_t current = __atomic_load_n(&control_->clock, __ATOMIC_RELAXED);
  while (current < stamp &&
         !__atomic_compare_exchange_n(&control_->clock, &current, stamp, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  processor_fence_after_atomic();  // all later reads come after the moment from which threads take this stamp
}

void RingMemory::note_progress() { __atomic_fetch_add(&control_->beats, 1, __ATOMIC_RELAXED); }

void RingMemory::notify_threads() {
  for (std::uint32_t i = 0; i < ring_count(); ++i) __atomic_store_n(&ring(i).soft, 0, __ATOMIC_SEQ_CST);
}

bool RingMemory::are_threads_notified() const {
  return __atomic_load_n(&control_->paused, __ATOMIC_SEQ_CST) != 0 ||
         __atomic_load_n(&control_->verdict, __ATOMIC_SEQ_CST) != verdict_go_on;
}

void RingMemory::ring_bell() {
  __atomic_fetch_add(&control_->bell, 1, __ATOMIC_SEQ_CST);
  wake(&control_->bell);
}

void RingMemory::wake(const void* word) { ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace cmt::collector
