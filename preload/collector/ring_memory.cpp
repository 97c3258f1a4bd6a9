#include "preload/collector/ring_memory.h"

#include <cpuid.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

#include "cmt/error.h"

namespace cmt::collector {

namespace {

constexpr std::uint64_t line_slots = 64 / slot_bytes;

bool knows_clflushopt() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
}

const bool has_clflushopt = knows_clflushopt();

/// Takes a line of memory out of all caches.
void flush_line(const Slot* at) {
  if (has_clflushopt)
    __asm__ volatile("clflushopt %0" : : "m"(*at));
  else
    _mm_clflush(at);
}

template <std::size_t bytes>
bool is_text(const char (&field)[bytes]) {
  return std::memchr(field, 0, bytes) != nullptr;
}

/// What a file of somebody's may not have.
bool is_sound(const Control& control) {
  return std::memcmp(control.magic, ring_magic, sizeof control.magic) == 0 && control.rings_limit <= rings_max &&
         control.outputs != 0 && control.outputs <= outputs_max &&
         std::all_of(control.paths, control.paths + outputs_max, [](const auto& path) { return is_text(path); }) &&
         is_text(control.program) && is_text(control.command) && is_text(control.rings_path);
}

}  // namespace

Memory::Memory(int fd, Use use, const std::string& path) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw std::system_error(errno, std::generic_category(), path);
  bytes_ = static_cast<std::uint64_t>(status.st_size);
  if (bytes_ < sizeof(Control)) throw FormatError(path, "holds no rings");
  const int sharing = use == Use::together ? MAP_SHARED : MAP_PRIVATE;
  void* begin = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, sharing | MAP_NORESERVE, fd, 0);
  if (begin == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path);
  control_ = static_cast<Control*>(begin);
  if (!is_sound(*control_)) throw FormatError(path, "holds no rings");
  if (rings_control_bytes(control_->rings_limit) > bytes_)
    throw FormatError(path, "is cut off in the table of its rings");
}

Memory::~Memory() {
  if (!is_ours_) return;
  ::munmap(control_, bytes_);
  ::close(fd_);
}

std::uint32_t Memory::ring_count() const {
  return std::min(__atomic_load_n(&control_->rings_used, __ATOMIC_ACQUIRE), control_->rings_limit);
}

bool Memory::has_places(const Ring& ring) const {
  return ring.slots <= bytes_ / slot_bytes && ring.slots_at <= bytes_ - ring.slots * slot_bytes &&
         ring.slots_at % slot_bytes == 0 && (ring.slots & (ring.slots - 1)) == 0;
}

std::size_t Memory::read(const Ring& ring, std::uint64_t from, std::uint64_t count_max, Packer& out) const {
  const std::uint64_t slots = ring.slots;
  if (slots == 0 || !has_places(ring)) return 0;
  const Slot* const places = this->places(ring);
  std::uint64_t at = from;
  return out.add_all(std::min(slots, count_max), [&](Slot& slot) {
    const Slot& place = places[at & (slots - 1)];
    if (!slot_is_published(&place, at++, slots)) return false;
    slot = place;
    if ((at & (line_slots - 1)) == 0) flush_line(&place);
    return true;
  });
}

std::size_t Memory::skip(const Ring& ring, std::uint64_t from, std::uint64_t end, Packer& out) const {
  const std::uint64_t slots = ring.slots;
  if (slots == 0 || !has_places(ring)) return 0;
  const Slot* const places = this->places(ring);
  end = std::min({end, ring.reserved, from + slots});
  std::uint64_t at = from;
  while (at < end && !slot_is_published(&places[at & (slots - 1)], at, slots)) ++at;
  if (at >= end) return 0;
  for (std::uint64_t i = from; i < at; ++i) out.add(record_void, 0);
  return at - from;
}

void Memory::allocate(const Ring& ring, std::uint64_t from, std::uint64_t to, int mode, bool& done) const {
  const std::uint64_t slots = ring.slots;
  if (to - from >= slots) {
    from = 0;
    to = slots;
  }
  while (from < to) {
    const std::uint64_t at = from & (slots - 1), count = std::min(to - from, slots - at);
    const auto offset = static_cast<off_t>(ring.slots_at + at * slot_bytes);
    int status;
    do status = ::fallocate(fd_, mode, offset, static_cast<off_t>(count * slot_bytes));
    while (status != 0 && errno == EINTR);
    // A file system that cannot reserve takes what comes.
    if (status != 0 && errno != EOPNOTSUPP) done = false;
    from += count;
  }
}

bool Memory::back(const Ring& ring, std::uint64_t from, std::uint64_t to) const {
  bool done = true;
  allocate(ring, from, to, 0, done);
  return done;
}

void Memory::release(const Ring& ring, std::uint64_t from, std::uint64_t to) const {
  constexpr std::uint64_t page = 4096 / slot_bytes;
  from = (from + page - 1) & ~(page - 1);
  to &= ~(page - 1);
  bool done = true;
  if (from < to) allocate(ring, from, to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, done);
}

void Memory::wake(const void* word) { ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace cmt::collector
