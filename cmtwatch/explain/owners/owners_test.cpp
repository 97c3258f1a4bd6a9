// Tests the search for owners on made-up memory: what each owner writes, damage to each byte of it, and random bytes.
#include "cmtwatch/explain/owners/owners.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "cmtwatch/explain/memory/made_up_memory.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t mib = 1 << 20, at_owner = 0x7f0000000000;
using Writer = std::function<void(MadeUpMemory&)>;

std::uint64_t resident_of(MadeUpMemory& memory, const OwnedMemory& owned) {
  std::uint64_t sum = 0;
  for (const Range& range : owned.ranges) sum += memory.resident_bytes(range);
  return sum;
}

std::vector<OwnedMemory> owners_of_all(MadeUpMemory& memory) {
  std::vector<Range> unknown;
  for (const process::Mapping& mapping : memory.mappings()) {
    if (!mapping.name.starts_with('/')) unknown.push_back({mapping.begin, mapping.end});
  }
  return find_owners(memory, unknown);
}

// Whole pages, within the unknown memory, by address, without overlap, and no page faulted in.
void check_promises(MadeUpMemory& memory, const std::vector<OwnedMemory>& owners) {
  std::vector<Range> all;
  for (const OwnedMemory& owned : owners) all.insert(all.end(), owned.ranges.begin(), owned.ranges.end());
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].begin % page_bytes == 0);
    CHECK(all[i].end % page_bytes == 0);
    CHECK(all[i].begin < all[i].end);
    CHECK((i == 0 || all[i - 1].end <= all[i].begin));
    const process::Mapping* const mapping = memory.find(all[i].begin);
    REQUIRE(mapping != nullptr);
    CHECK(all[i].end <= mapping->end);
    CHECK_FALSE(mapping->name.starts_with('/'));
  }
  CHECK(memory.faults() == 0);
}

struct PoolHeader {
  std::uint64_t used = 0, free_block = 0, next = 0, previous = 0;
  std::uint32_t arena = 0, size_index = 0, next_offset = 0, last_offset = 0;
};

void write_pool(MadeUpMemory& memory, std::uint64_t address, std::uint32_t pool_bytes, std::uint32_t units,
                std::uint32_t used, std::uint32_t unit_bytes = 16) {
  const std::uint32_t block = units * unit_bytes;
  memory.write(address, PoolHeader{.used = used,
                                   .free_block = address + 48,
                                   .size_index = units - 1,
                                   .next_offset = 48 + (used + 1) * block,
                                   .last_offset = pool_bytes - block});
  for (std::uint64_t page = page_bytes; page < pool_bytes; page += page_bytes) memory.write(address + page, 'x');
}

// The first segment has three spans: a page of 64 KiB with 10 blocks of 100 bytes, a free one, a page with a large
// block. Other threads freed 2 of the blocks. The second segment is that of a block of 40 MiB.
void write_segments(MadeUpMemory& memory, std::size_t fields, std::uint32_t entry_bytes, bool is_later) {
  memory.map(at_owner, 96 * mib);
  const auto write_header = [&](std::uint64_t segment, std::uint64_t slices, std::uint32_t kind) {
    const std::uint64_t words[] = {slices, 1, kind, std::min<std::uint64_t>(slices, 512), 0x7f1234};
    memory.write(segment + fields, words, sizeof words);
  };
  const auto write_span = [&](std::uint64_t segment, std::uint64_t slice, std::uint32_t slices, std::uint32_t used,
                              std::uint32_t block, std::uint64_t freed = 0) {
    const std::uint64_t entry = segment + fields + 40 + slice * entry_bytes;
    memory.write(entry, slices);
    if (is_later) {
      memory.write(entry + 32, static_cast<std::uint16_t>(used));
      memory.write(entry + 40, std::uint64_t{block});
      memory.write(entry + 48, segment + slice * (64 << 10));
    } else {
      memory.write(entry + 24, used);
      memory.write(entry + 28, block);
    }
    memory.write(entry + (is_later ? 56 : 40), freed);
  };
  write_header(at_owner, 512, 0);
  write_span(at_owner, 0, 1, 0, 0);
  write_span(at_owner, 1, 1, 10, 100, (at_owner + 65536 + 400) | 2);  // one in the list, one in the heap's
  write_span(at_owner, 2, 500, 0, 0);
  write_span(at_owner, 502, 10, 1, 600000);
  memory.write(at_owner + 65536 + 400, std::uint64_t{0});
  const std::uint64_t huge = at_owner + 32 * mib;
  write_header(huge, 641, 1);
  write_span(huge, 0, 1, 0, 0);
  write_span(huge, 1, 640, 1, 40 << 20);
}

constexpr std::uint64_t at_chunks = 0x7f0000200000;
void write_chunks(MadeUpMemory& memory) {
  const std::uint64_t first = at_chunks, second = at_chunks + 4 * mib, kept = at_chunks + 2 * mib;
  memory.map(at_chunks, 6 * mib);
  memory.map(at_chunks + 8 * mib, 3 * mib);  // a large block of 2.5 MiB, and something else
  const auto write_chunk = [&](std::uint64_t chunk, std::uint64_t next, std::uint64_t previous) {
    const std::uint64_t words[] = {first + 64, next, previous, 100};
    memory.write(chunk, words, sizeof words);
  };
  write_chunk(first, second, second);
  write_chunk(second, first, first);
  write_chunk(kept, 0, second);
  const std::uint64_t large_block[] = {at_chunks + 8 * mib, 5 * mib / 2, 0};
  memory.write(first + 4096, large_block, sizeof large_block);
  memory.write(first + 64 + 16, std::uint64_t{123456});
  const std::uint64_t fields[] = {first + 4096, first, kept};
  memory.write(first + 64 + 304, fields, sizeof fields);
}

TEST_CASE("owners: Python's pools count the blocks in use") {
  MadeUpMemory memory;
  memory.map(at_owner, mib);
  write_pool(memory, at_owner + 0x4000, 16384, 3, 17);
  write_pool(memory, at_owner + 0x8000, 16384, 32, 0);
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 1);
  CHECK(owners[0].owner == "Python's small objects");
  CHECK_FALSE(owners[0].is_likely);
  CHECK(owners[0].live_bytes == 17 * 48);
  CHECK(owners[0].pieces == 2);
  CHECK(owners[0].remark == "1 of the pools are empty");
  CHECK(owners[0].ranges == std::vector<Range>{{at_owner + 0x4000, at_owner + 0xc000}});
  check_promises(memory, owners);
}

TEST_CASE("owners: pools of 4 KiB are looked for in an older Python only") {
  for (const bool is_older : {false, true}) {
    MadeUpMemory memory;
    memory.map(at_owner, mib);
    memory.map(at_owner + mib, page_bytes, is_older ? "/usr/lib/libpython3.6m.so.1.0" : "/usr/lib/libpython3.12.so.1");
    write_pool(memory, at_owner + 0x1000, 4096, 5, 20, 8);
    const auto owners = owners_of_all(memory);
    REQUIRE(owners.size() == (is_older ? 1 : 0));
    if (is_older) CHECK(owners[0].live_bytes == 20 * 40);
  }
}

TEST_CASE("owners: a pool whose header contradicts itself is none") {
  const std::vector<std::function<void(PoolHeader&)>> wrongs = {
      [](PoolHeader& pool) { pool.used = 400; },                 // more than were ever carved
      [](PoolHeader& pool) { pool.free_block = at_owner - 8; },  // in another pool
      [](PoolHeader& pool) { pool.size_index = 4; },             // a size that the last offset denies
      [](PoolHeader& pool) { pool.next_offset = 48 + 3 * 48 + 1; },
      [](PoolHeader& pool) { pool.next_offset = 0xffffffff; },
      [](PoolHeader& pool) { pool.last_offset = 16384; },
      [](PoolHeader& pool) { pool.last_offset = 0; },
  };
  for (const auto& make_wrong : wrongs) {
    MadeUpMemory memory;
    memory.map(at_owner, mib);
    PoolHeader pool{.used = 2, .size_index = 2, .next_offset = 48 + 3 * 48, .last_offset = 16384 - 48};
    make_wrong(pool);
    memory.write(at_owner, pool);
    CHECK(owners_of_all(memory).empty());
  }
}

TEST_CASE("owners: mimalloc's segments of each layout count the live blocks, without those that others freed") {
  struct Layout {
    std::size_t fields;
    std::uint32_t entry_bytes;
    bool is_later;
  };
  for (const Layout& layout : {Layout{224, 80, false}, Layout{280, 80, false}, Layout{296, 96, true}}) {
    MadeUpMemory memory;
    write_segments(memory, layout.fields, layout.entry_bytes, layout.is_later);
    const auto owners = owners_of_all(memory);
    REQUIRE(owners.size() == 1);
    CHECK(owners[0].owner == "mimalloc");
    CHECK(owners[0].live_bytes == 8 * 100 + 600000 + 40 * mib);
    CHECK(owners[0].pieces == 2);
    CHECK(owners[0].remark == "10 blocks are live, 2 wait for the threads that own them, freed by others");
    CHECK(owners[0].ranges == std::vector<Range>{{at_owner, at_owner + 32 * mib + 641 * 65536}});
    check_promises(memory, owners);
  }
}

TEST_CASE("owners: a list of freed blocks that goes in a circle ends with the blocks in use") {
  MadeUpMemory memory;
  write_segments(memory, 224, 80, false);
  memory.write(at_owner + 65536 + 400, at_owner + 65536 + 400);
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 1);
  CHECK(owners[0].live_bytes == 600000 + 40 * mib);
}

TEST_CASE("owners: PHP's chunks, the ones it keeps, and its large blocks") {
  MadeUpMemory memory;
  write_chunks(memory);
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 1);
  CHECK(owners[0].owner == "PHP's Zend allocator");
  CHECK(owners[0].live_bytes == 123456);
  CHECK(owners[0].pieces == 3);
  CHECK(owners[0].remark == "1 of the chunks are kept for later");
  CHECK(owners[0].ranges.back() == Range{at_chunks + 8 * mib, at_chunks + 8 * mib + 5 * mib / 2});
  check_promises(memory, owners);
}

TEST_CASE("owners: PHP's chunks have no live bytes if the heap's layout is unknown") {
  MadeUpMemory memory;
  write_chunks(memory);
  memory.write(at_chunks + 64 + 312, std::uint64_t{0});
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 1);
  CHECK(owners[0].live_bytes == std::nullopt);
  CHECK(owners[0].pieces == 2);
}

TEST_CASE("owners: a list of PHP's large blocks that goes in a circle ends") {
  MadeUpMemory memory;
  write_chunks(memory);
  memory.write(at_chunks + 4096 + 16, at_chunks + 4096);
  CHECK(owners_of_all(memory).size() == 1);
}

TEST_CASE("owners: names that a program gave the kernel are owners, but memory that is recognised keeps its own") {
  MadeUpMemory memory;
  memory.map(at_owner, mib, "[anon:cpython:pymalloc]");
  memory.map(at_owner + 2 * mib, mib, "[anon:glibc: malloc]");
  memory.map(at_owner + 4 * mib, mib, "[anon:glibc: malloc]");
  memory.map(at_owner + 6 * mib, mib);
  write_pool(memory, at_owner, 16384, 1, 1);
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 3);
  CHECK(owners[0].owner == "Python's small objects");
  CHECK(owners[1].owner == "cpython:pymalloc");
  CHECK(owners[1].ranges == std::vector<Range>{{at_owner + 0x4000, at_owner + mib}});
  CHECK(owners[2].owner == "glibc: malloc");
  CHECK(owners[2].ranges.size() == 2);
  CHECK_FALSE(owners[2].is_likely);
  check_promises(memory, owners);
}

TEST_CASE("owners: simple marks make V8, Ruby, Java and Go likely") {
  MadeUpMemory memory;
  memory.map(0xc0000000, mib);
  memory.map(0x600000, page_bytes);  // a program that is linked to low addresses has data here
  memory.map(0xc000000000, 4 * mib);
  memory.map(0x7f0000000000, mib);
  memory.map(0x7f0010000000, mib);
  memory.map(0x7f0020000000, mib, "", "rwxp");
  memory.map(0x7f0030000000, page_bytes, "/usr/lib/libruby-3.1.so.3.1");
  memory.map(0x7f0040000000, page_bytes, "/usr/lib/jvm/lib/server/libjvm.so");
  const std::uint64_t v8_words[] = {0x40000, 0x18, 0x7f00, 0x7f0000000110, 0x7f0000040000};
  memory.write(0x7f0000000000, v8_words, sizeof v8_words);
  memory.write(0x7f0010010000, std::uint64_t{0x7f0010000040});
  memory.write(0x7f0010000040 + 24, std::uint64_t{0x7f0010010028});
  const auto owners = owners_of_all(memory);
  REQUIRE(owners.size() == 5);
  CHECK(owners[0].owner == "V8's heap of JavaScript objects");
  CHECK(owners[0].ranges == std::vector<Range>{{0x7f0000000000, 0x7f0000040000}});
  CHECK(owners[1].owner == "Ruby's heap of objects");
  CHECK(owners[1].ranges == std::vector<Range>{{0x7f0010010000, 0x7f0010020000}});
  CHECK(owners[2].owner == "Java's heap");
  CHECK(owners[2].ranges == std::vector<Range>{{0xc0000000, 0xc0000000 + mib}});
  CHECK(owners[3].owner == "Java's compiled code");
  CHECK(owners[4].owner == "Go's heap");
  for (const OwnedMemory& owned : owners) CHECK(owned.is_likely);
  check_promises(memory, owners);
}

TEST_CASE("owners: only the unknown part of a segment is answered, and swapped pages stay where they are") {
  MadeUpMemory memory;
  write_segments(memory, 224, 80, false);
  memory.set_state({at_owner + 0xc000, at_owner + 0x10000}, PageState::swapped);
  const auto owners = find_owners(memory, {{at_owner, at_owner + 2 * mib}, {at_owner + 3 * mib, at_owner + 4 * mib}});
  REQUIRE(owners.size() == 1);
  CHECK(owners[0].ranges ==
        std::vector<Range>{{at_owner, at_owner + 2 * mib}, {at_owner + 3 * mib, at_owner + 4 * mib}});
  CHECK(resident_of(memory, owners[0]) == 3 * page_bytes);  // of the header two, of the list one
  CHECK(memory.faults() == 0);
}

TEST_CASE("owners: the search ends at the last addresses, where a core file has the kernel's page") {
  MadeUpMemory memory;
  memory.map(0xffffffffff600000, page_bytes);
  memory.write(0xffffffffff600000, 'x');
  CHECK(owners_of_all(memory).empty());
}

// A process that runs changes any word at any time.
TEST_CASE("owners: no damage to a header breaks a promise") {
  struct Damaged {
    Writer writer;
    std::uint64_t begin, bytes;
  };
  const Writer older = [](MadeUpMemory& memory) { write_segments(memory, 224, 80, false); };
  const Writer later = [](MadeUpMemory& memory) { write_segments(memory, 296, 96, true); };
  const Writer pool = [](MadeUpMemory& memory) {
    memory.map(at_owner, mib);
    write_pool(memory, at_owner, 16384, 3, 17);
  };
  for (const Damaged& damaged : {Damaged{older, at_owner + 224, 200}, Damaged{later, at_owner + 296, 200},
                                 Damaged{write_chunks, at_chunks, 28}, Damaged{write_chunks, at_chunks + 368, 24},
                                 Damaged{write_chunks, at_chunks + 4096, 24}, Damaged{pool, at_owner, 48}}) {
    for (std::uint64_t offset = 0; offset < damaged.bytes; offset += 4) {
      for (const std::uint32_t word : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
        MadeUpMemory memory;
        damaged.writer(memory);
        memory.write(damaged.begin + offset, word);
        check_promises(memory, owners_of_all(memory));
      }
    }
  }
}

TEST_CASE("owners: random words, many of them addresses of the memory itself, break no promise") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    MadeUpMemory memory;
    memory.map(at_owner - mib, page_bytes, "/usr/lib/libpython3.8.so");
    memory.map(at_owner - 2 * mib, page_bytes, "/usr/lib/libruby.so");
    memory.map(at_owner, 64 * mib);
    for (std::uint64_t page = 0; page < 64 * mib; page += 2 * mib) {
      for (std::uint64_t word = 0; word < page_bytes; word += 8) {
        const std::uint64_t bits = random();
        const std::uint64_t near = at_owner + page + 64 * (bits >> 62), small = (bits >> 8) % 600, shift = bits % 64;
        memory.write(at_owner + page + word, bits % 3 == 0 ? near : bits % 3 == 1 ? small : bits >> shift);
      }
    }
    check_promises(memory, owners_of_all(memory));
  }
}

}  // namespace
}  // namespace cmt::watch::explain
