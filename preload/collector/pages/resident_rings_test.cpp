// Checks the count of resident pages of rings against /proc/self/smaps. This process is the program too.
#include "preload/collector/pages/resident_rings.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

using namespace cmt::collector;

namespace {

constexpr std::uint32_t ring_count = 3, slots_each = 4096;

const std::uint64_t stacks_at =
    (rings_control_bytes(ring_count) + ring_count * slots_each * slot_bytes + 4095) & ~std::uint64_t{4095};

int make_shared_rings(std::uint64_t table_at = 0, std::uint32_t process = static_cast<std::uint32_t>(::getpid())) {
  const int fd = ::memfd_create("rings", MFD_CLOEXEC);
  REQUIRE(::ftruncate(fd, static_cast<off_t>(stacks_at + sizeof(StackShare))) == 0);
  void* at = ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(at != MAP_FAILED);
  auto* control = static_cast<Control*>(at);
  std::memcpy(control->magic, ring_magic, sizeof control->magic);
  control->process = static_cast<std::uint32_t>(::getpid());
  control->rings_limit = ring_count;
  control->rings_used = ring_count - 1;
  control->outputs = 1;
  control->stacks_at = table_at;
  control->process = process;
  ::munmap(at, sizeof(Control));
  return fd;
}

/// Returns the resident bytes of a file's mapping, as the kernel counts them.
std::uint64_t rss_by_smaps(int fd) {
  struct stat status {};
  REQUIRE(::fstat(fd, &status) == 0);
  std::ifstream smaps("/proc/self/smaps");
  bool is_here = false;
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(':')) is_here = line.find(" " + std::to_string(status.st_ino) + " ") != line.npos;
    if (is_here && line.starts_with("Rss:")) bytes += std::strtoull(line.c_str() + 4, nullptr, 10) * 1024;
  }
  return bytes;
}

void touch_page_at(RingMemory& memory, std::uint64_t offset) {
  reinterpret_cast<volatile char*>(&memory.control())[offset] = 1;
}

}  // namespace

TEST_CASE("resident rings: the count is the kernel's") {
  RingMemory memory(make_shared_rings(), RingMemory::Access::shared, "rings");
  for (std::uint32_t i = 0; i < ring_count; ++i) {
    Ring& ring = memory.ring(i);
    ring.slots_at = rings_control_bytes(ring_count) + std::uint64_t{i} * slots_each * slot_bytes;
    ring.slots = slots_each;
  }
  ResidentRings resident(memory);
  const std::uint64_t control = resident.count();
  CHECK(control == rss_by_smaps(memory.descriptor()));
  CHECK(control != 0);

  for (const std::uint64_t offset : {0, 1, 5, 20})
    touch_page_at(memory, memory.ring(offset % 2 == 0 ? 0 : 1).slots_at + offset * 4096 % (slots_each * slot_bytes));
  CHECK(resident.count() == rss_by_smaps(memory.descriptor()));
  CHECK(resident.count() == control + 4 * 4096);

  memory.allocate(memory.ring(0), 0, slots_each);  // memory that only the file has is not the program's
  memory.release(memory.ring(1), 0, slots_each);
  CHECK(resident.count() == rss_by_smaps(memory.descriptor()));
  CHECK(resident.count() < control + 4 * 4096);
}

TEST_CASE("resident rings: the table of call stacks counts where it is mapped, and only the pages in use") {
  for (const bool has_own_place : {false, true}) {
    RingMemory memory(make_shared_rings(stacks_at), RingMemory::Access::shared, "rings");
    void* const place = has_own_place ? ::mmap(nullptr, sizeof(StackShare), PROT_READ | PROT_WRITE, MAP_SHARED,
                                               memory.descriptor(), static_cast<off_t>(stacks_at))
                                      : reinterpret_cast<char*>(&memory.control()) + stacks_at;
    REQUIRE(place != MAP_FAILED);
    ResidentRings resident(memory);
    resident.count();  // reads the table of rings, and so has its page in memory
    const std::uint64_t before = resident.count();
    static_cast<volatile StackShare*>(place)->interpreter.used = 1;
    static_cast<volatile StackShare*>(place)->interpreter.text[1 << 20] = 'a';
    CHECK(resident.count() == rss_by_smaps(memory.descriptor()));
    CHECK(resident.count() == before + 2 * 4096);
    CHECK(memory.interpreter_counts().named == 0);
    static_cast<volatile StackShare*>(place)->interpreter.used = 5;
    static_cast<volatile StackShare*>(place)->interpreter.unplaced = 7;
    CHECK((memory.interpreter_counts().named == 4 && memory.interpreter_counts().unplaced == 7));
    CHECK(resident.count() == before + 2 * 4096);
    if (has_own_place) ::munmap(place, sizeof(StackShare));
  }
}

TEST_CASE("resident rings: nothing of a process that has none") {
  RingMemory memory(make_shared_rings(0, 1), RingMemory::Access::shared, "rings");
  CHECK(ResidentRings(memory).count() == 0);
}
