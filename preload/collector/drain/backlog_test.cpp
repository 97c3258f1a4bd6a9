// Checks that the backlog keeps its order and bounds, with a full disk and with many threads.

#include "preload/collector/drain/backlog.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

using namespace cmt::collector;

namespace {

constexpr std::uint64_t ring_bytes = std::uint64_t{ring_slots_large} * Packer::record_bytes_max;

/// Puts items, each with its number in all of its words, and checks what comes out.
struct Fixture {
  explicit Fixture(std::uint64_t memory_max, std::uint64_t file_max) : backlog("/tmp", memory_max, file_max) {}

  void put(std::size_t records) {
    Packed packed{std::make_unique<std::uint64_t[]>(records * 2), records * 2, records};
    std::fill_n(packed.words.get(), packed.size, put_count);
    backlog.put({.ring = put_count, .records = std::move(packed)});
    ++put_count;
  }
  bool gets(std::size_t records) {
    const auto item = backlog.next_item();
    if (!item || item->ring != taken_count || item->records.count != records) return false;
    const Packed& packed = item->records;
    if (packed.size != records * 2) return false;
    for (std::size_t i = 0; i < packed.size; ++i) {
      if (packed.words[i] != taken_count) return false;
    }
    ++taken_count;
    return true;
  }

  Backlog backlog;
  std::uint32_t put_count = 0, taken_count = 0;
};

/// In bytes, of the unnamed files that this process has open.
std::uintmax_t longest_unnamed_file() {
  std::uintmax_t longest = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().find(" (deleted)") == std::string::npos) continue;
    const std::uintmax_t bytes = std::filesystem::file_size(entry, gone);
    if (!gone) longest = std::max(longest, bytes);
  }
  return longest;
}

}  // namespace

TEST_CASE("backlog: records that do not fit memory go through the file, and come in order") {
  Fixture fixture(ring_bytes, 8 * ring_bytes);
  for (int i = 0; i < 6; ++i) fixture.put(ring_slots_large);
  for (int i = 0; i < 6; ++i) CHECK(fixture.gets(ring_slots_large));
  CHECK_FALSE(fixture.backlog.next_item());
}

TEST_CASE("backlog: more than the bound goes through the file in turn") {
  Fixture fixture(1, 4 * ring_bytes + 100);
  std::vector<std::size_t> sizes;
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::size_t records = 1 + i * 7919 % ring_slots_large;
    while (!fixture.backlog.has_room()) CHECK(fixture.gets(sizes[taken++]));
    fixture.put(records);
    sizes.push_back(records);
  }
  while (taken < sizes.size()) CHECK(fixture.gets(sizes[taken++]));
  CHECK(taken > 390);
}

TEST_CASE("backlog: the file is as long as the most that waited at once") {
  Fixture fixture(1, 1000 * ring_bytes);
  for (int i = 0; i < 3; ++i) fixture.put(ring_slots_large / 2);
  for (int i = 0; i < 500; ++i) {
    fixture.put(ring_slots_large / 2);
    REQUIRE(fixture.gets(ring_slots_large / 2));
  }
  CHECK(longest_unnamed_file() > 0);
  CHECK(longest_unnamed_file() <= 4 * ring_bytes);
}

TEST_CASE("backlog: where memory and file are full there is no room, until an item is removed") {
  Fixture fixture(ring_bytes, 2 * ring_bytes);
  for (int i = 0; i < 3; ++i) {
    CHECK(fixture.backlog.has_room());
    fixture.put(ring_slots_large);
  }
  CHECK_FALSE(fixture.backlog.has_room());
  CHECK(fixture.gets(ring_slots_large));
  CHECK(fixture.backlog.has_room());
}

TEST_CASE("backlog: without a file there is only the memory") {
  Fixture fixture(ring_bytes, 0);
  fixture.put(ring_slots_large);
  CHECK_FALSE(fixture.backlog.has_room());
  CHECK(fixture.gets(ring_slots_large));
}

TEST_CASE("backlog: two threads that put at once open one file") {
  Backlog backlog("/tmp", 1, 64 * ring_bytes);
  const auto put_some = [&] {
    for (int i = 0; i < 50; ++i) {
      Packed packed{std::make_unique<std::uint64_t[]>(2), 2, 1};
      packed.words[0] = packed.words[1] = 7;
      backlog.put({.records = std::move(packed)});
    }
  };
  std::thread other(put_some);
  put_some();
  other.join();
  int right = 0;
  while (const auto item = backlog.next_item()) right += item->records.count == 1 && item->records.words[1] == 7;
  CHECK(right == 100);
  CHECK(backlog.lost_records() == 0);
}

TEST_CASE("backlog: what waits is counted, and enough of it or a request ends a wait") {
  Fixture fixture(2 * ring_bytes, 8 * ring_bytes);
  Backlog& backlog = fixture.backlog;
  CHECK_FALSE(backlog.wait_for_records(0, 0));
  fixture.put(10);
  fixture.put(ring_slots_large);
  fixture.put(ring_slots_large);
  CHECK(backlog.wait_for_records(0, 0));
  CHECK(backlog.wait_for_records(2 * ring_slots_large + 10, 0));
  CHECK_FALSE(backlog.wait_for_records(2 * ring_slots_large + 11, 0));
  CHECK(backlog.waiting().records == 2 * ring_slots_large + 10);
  CHECK(backlog.waiting().bytes == 2 * ring_bytes + 160);
  CHECK(backlog.bytes_max() == 10 * ring_bytes);
  backlog.put({.type = WorkItem::Type::flush});
  CHECK(backlog.wait_for_records(1 << 30, 0));
  CHECK(backlog.waiting().requests == 1);
  for (const std::size_t records : {std::size_t{10}, std::size_t{ring_slots_large}, std::size_t{ring_slots_large}})
    CHECK(fixture.gets(records));
  CHECK(backlog.next_item()->type == WorkItem::Type::flush);
  const Backlog::Waiting left = backlog.waiting();
  CHECK((left.records == 0 && left.bytes == 0 && left.requests == 0));
}
