// Tests that the start facts stay as they were when the program writes to the shared memory later.
#include "preload/collector/drain/start_facts.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "cmt/error.h"
#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {
namespace {

constexpr std::uint32_t rings = 2;

std::unique_ptr<Control> make_control() {
  auto control = std::make_unique<Control>();
  std::memcpy(control->magic, ring_magic, sizeof control->magic);
  control->process = 1234;
  control->rings_limit = rings;
  control->outputs = 1;
  std::strcpy(control->program, "app");
  std::strcpy(control->paths[0], "/tmp/app.cmt");
  std::strcpy(control->control_path, "/tmp/app.fifo");
  control->made_control = 1;
  return control;
}

/// A file in memory with a control block.
int file_of(const Control& control) {
  const int fd = ::memfd_create("rings", MFD_CLOEXEC);
  const std::uint64_t bytes = rings_control_bytes(rings) + std::uint64_t{rings} * ring_slots_small * slot_bytes;
  REQUIRE(::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
  REQUIRE(::pwrite(fd, &control, sizeof control, 0) == ssize_t{sizeof control});
  return fd;
}

}  // namespace

TEST_CASE("start facts: names and numbers of files and processes stay as they were at the start") {
  RingMemory memory(file_of(*make_control()), RingMemory::Access::shared, "rings");
  Control& control = memory.control();
  control.process = control.process_outside = 1;
  control.rings_limit = control.outputs = 99999;
  control.rings_used = 99999;
  control.clock_is_ns = 1;
  std::memset(control.paths, 'x', sizeof control.paths);
  std::memset(control.control_path, 'x', sizeof control.control_path);
  std::strcpy(control.status_path, "/tmp/other");
  std::strcpy(control.rings_path, "/tmp/other");
  CHECK(memory.start_facts().process == 1234);
  CHECK_FALSE(memory.start_facts().is_outside);
  CHECK_FALSE(memory.start_facts().clock_is_ns);
  CHECK(memory.start_facts().outputs == 1);
  CHECK(memory.start_facts().paths[0] == "/tmp/app.cmt");
  CHECK(memory.start_facts().control_path == "/tmp/app.fifo");
  CHECK(memory.start_facts().status_path.empty());
  CHECK_FALSE(memory.is_recoverable());
  CHECK(memory.ring_count() == rings);
}

TEST_CASE("start facts: a description that the program cannot write to counts, not its own") {
  const auto described = make_control(), shared = make_control();
  std::strcpy(shared->control_path, "/etc/passwd");
  const RingMemory memory(file_of(*shared), RingMemory::Access::shared, "rings", described.get());
  CHECK(memory.start_facts().control_path == "/tmp/app.fifo");
}

TEST_CASE("start facts: a text without an end is refused, and so are more files or rings than there can be") {
  const auto refuses = [](auto damage) {
    const auto control = make_control();
    damage(*control);
    CHECK_FALSE(StartFacts::read(*control).has_value());
    const int fd = file_of(*control);
    CHECK_THROWS_AS(RingMemory(fd, RingMemory::Access::shared, "rings"), FormatError);
    ::close(fd);
  };
  refuses([](Control& control) { std::memset(control.status_path, 'x', sizeof control.status_path); });
  refuses([](Control& control) { std::memset(control.command, 'x', sizeof control.command); });
  refuses([](Control& control) { control.outputs = outputs_max + 1; });
  refuses([](Control& control) { control.rings_limit = rings_max + 1; });
}

TEST_CASE("start facts: slots that are not in the memory are none") {
  RingMemory memory(file_of(*make_control()), RingMemory::Access::shared, "rings");
  Ring& ring = memory.ring(1);
  ring.slots_at = rings_control_bytes(rings);
  ring.slots = ring_slots_small;
  CHECK(memory.slots_of(ring).count == ring_slots_small);
  CHECK(memory.allocate(ring, 0, ring_slots_small));
  for (const std::uint32_t slots : {3U, 2U * ring_slots_small + 1, 4U * ring_slots_small, 1U << 31}) {
    ring.slots = slots;
    CHECK(memory.slots_of(ring).count == 0);
    CHECK_FALSE(memory.allocate(ring, 0, slots));
  }
  ring.slots = ring_slots_small;
  ring.slots_at = ~std::uint64_t{15};
  CHECK(memory.slots_of(ring).count == 0);
}

}  // namespace cmt::collector
