// Tests the parts that all memories share: the search of mappings, the states of pages, reads that fault in no page.
#include "cmtwatch/explain/memory/address_space.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cmtwatch/explain/memory/made_up_memory.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t base_address = 0x7f0000000000;

TEST_CASE("address space: a mapping is found by each of its addresses, and by no other") {
  MadeUpMemory memory;
  memory.map(base_address + 0x10000, 0x2000, "second");
  memory.map(base_address, 0x1000, "first");
  REQUIRE(memory.mappings().size() == 2);
  CHECK(memory.mappings()[0].name == "first");
  CHECK(memory.find(base_address - 1) == nullptr);
  CHECK(memory.find(base_address) == &memory.mappings()[0]);
  CHECK(memory.find(base_address + 0x1000) == nullptr);
  CHECK(memory.find(base_address + 0x11fff) == &memory.mappings()[1]);
  CHECK(memory.find(base_address + 0x12000) == nullptr);
}

TEST_CASE("address space: only whole pages within a range count") {
  MadeUpMemory memory;
  memory.map(base_address, 0x4000);
  memory.write(base_address, 'a');
  memory.write(base_address + 0x2000, 'b');
  memory.set_state({base_address + 0x3000, base_address + 0x4000}, PageState::swapped);
  CHECK(memory.mappings()[0].resident_bytes == 0x2000);
  CHECK(memory.mappings()[0].swapped_bytes == 0x1000);
  CHECK(memory.resident_bytes({base_address, base_address + 0x4000}) == 0x2000);
  CHECK(memory.resident_bytes({base_address + 1, base_address + 0x4000}) == 0x1000);
  CHECK(memory.swapped_bytes({base_address, base_address + 0x4000}) == 0x1000);
  CHECK(memory.page(base_address + 0x1000) == PageState::absent);
  CHECK(memory.page(base_address + 0x4000) == PageState::absent);
}

TEST_CASE("address space: a read that meets a page that is not resident fails, and touches nothing") {
  MadeUpMemory memory;
  memory.map(base_address, 0x4000);
  memory.write(base_address + 0xffc, std::uint64_t{0x1122334455667788});
  memory.set_state({base_address + 0x2000, base_address + 0x3000}, PageState::swapped);
  CHECK(memory.read<std::uint64_t>(base_address + 0xffc) == 0x1122334455667788);
  CHECK(memory.read<std::uint64_t>(base_address + 0x1ffc) == std::nullopt);
  CHECK(memory.read<std::uint64_t>(base_address + 0x3000) == std::nullopt);
  CHECK(memory.read<std::uint64_t>(base_address - 8) == std::nullopt);
  CHECK(memory.faults() == 0);
}

TEST_CASE("address space: pages that are not resident, or of no mapping, are read as zeros") {
  MadeUpMemory memory;
  const Range range = memory.map(base_address, 0x3000);
  memory.write(base_address + 0x1000, 'x');
  memory.map(base_address + 0x4000, 0x1000);
  memory.write(base_address + 0x4000, 'y');
  std::vector<std::uint8_t> bytes(0x5000, 0xff);
  CHECK(memory.read_pages(range, bytes.data()));
  CHECK(bytes[0] == 0);
  CHECK(bytes[0x1000] == 'x');
  CHECK(bytes[0x2fff] == 0);
  CHECK(memory.read_bytes() == 0x1000);
  CHECK(memory.faults() == 0);
  CHECK(memory.read_pages({base_address, base_address + 0x5000}, bytes.data()));
  CHECK(bytes[0x3fff] == 0);
  CHECK(bytes[0x4000] == 'y');
  CHECK(memory.resident_bytes({base_address, base_address + 0x5000}) == 0x2000);
}

TEST_CASE("address space: the next resident page is found across absent and swapped ones, and across mappings") {
  MadeUpMemory memory;
  memory.map(base_address, 0x4000);
  memory.map(base_address + 0x8000, 0x2000);
  memory.write(base_address + 0x1000, 'a');
  memory.set_state({base_address + 0x2000, base_address + 0x3000}, PageState::swapped);
  memory.write(base_address + 0x9000, 'b');
  const auto next = [&](std::uint64_t from) {
    return memory.next_resident({base_address + from, base_address + 0xa000}) - base_address;
  };
  CHECK(next(0) == 0x1000);
  CHECK(next(0x1000) == 0x1000);
  CHECK(next(0x1001) == 0x9000);
  CHECK(next(0x2000) == 0x9000);
  CHECK(next(0x9001) == 0xa000);
  CHECK(memory.next_resident({base_address, base_address + 0x1000}) == base_address + 0x1000);
}

TEST_CASE("address space: a mapping of 16 TB with few resident pages costs no more than these") {
  MadeUpMemory memory;
  const Range range = memory.map(base_address - (std::uint64_t{1} << 44), std::uint64_t{1} << 44);
  memory.write(range.begin + 0x5000, 'a');
  memory.write(range.end - 0x1000, 'b');
  CHECK(memory.resident_bytes(range) == 0x2000);
  CHECK(memory.next_resident({range.begin + 0x6000, range.end}) == range.end - 0x1000);
  CHECK(memory.page(range.begin + 0x4000) == PageState::absent);
  CHECK(memory.page(range.begin + 0x5fff) == PageState::resident);
}

TEST_CASE("address space: a file is read whole, and each short text is whole in one of the pieces") {
  const std::string path = "/proc/self/exe";
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  constexpr std::size_t overlap = 256;
  REQUIRE(all.size() > 100000);
  const auto memory = open_process(getpid());
  std::string joined;
  std::size_t pieces = 0;
  CHECK(memory->read_file(std::filesystem::read_symlink(path), [&](std::string_view piece) {
    const std::size_t again = pieces == 0 ? 0 : overlap;
    CHECK(joined.substr(joined.size() - again) == piece.substr(0, again));
    joined += piece.substr(again);
    ++pieces;
    return true;
  }));
  CHECK(pieces > 1);
  CHECK(joined.size() == all.size());
  CHECK((joined == all));
  CHECK_FALSE(memory->read_file("/no/such/file", [](std::string_view) { return true; }));
}

}  // namespace
}  // namespace cmt::watch::explain
