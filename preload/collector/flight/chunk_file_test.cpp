// Checks that chunks are used again, and that columns of stacks come back as they were.

#include "preload/collector/flight/chunk_file.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "preload/collector/flight/full_disk_fixture.h"
#include "preload/collector/flight/stack_column.h"

using namespace cmt;
using namespace cmt::collector;

namespace {

/// Digits, so that no two places are alike.
std::string text_of(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i);
  return text.substr(0, bytes);
}

}  // namespace

TEST_CASE("chunk file: chains hold what was appended, and chunks are used again") {
  ChunkFile file("/tmp");
  ChunkFile::Chain first, second;
  const std::string long_text = text_of(3 * ChunkFile::chunk_bytes + 3);
  REQUIRE(file.append(first, "begin"));
  REQUIRE(file.append(second, "other"));
  REQUIRE(file.append(first, long_text));
  CHECK(file.read(first, 0, 5) == "begin");
  CHECK(file.read(first, 5, long_text.size()) == long_text);
  CHECK(file.read(second, 1, 3) == "the");
  const std::uint64_t most = file.bytes_in_use();
  CHECK(most == 5 * ChunkFile::chunk_bytes);
  file.release(first);
  CHECK(file.bytes_in_use() == ChunkFile::chunk_bytes);
  ChunkFile::Chain third;
  REQUIRE(file.append(third, long_text));
  CHECK(file.bytes_in_use() <= most);
  CHECK(file.read(third, 0, long_text.size()) == long_text);
  CHECK(file.read(second, 0, 5) == "other");
}

TEST_CASE("chunk file: a folder that is gone is replaced by that of temporary files") {
  ChunkFile file("/nonexistent");
  ChunkFile::Chain chain;
  REQUIRE(file.append(chain, "text"));
  CHECK(file.read(chain, 0, 4) == "text");
}

TEST_CASE("chunk file: bytes are in memory until a file can be made") {
  const char* const before = std::getenv("TMPDIR");
  const std::optional<std::string> folder = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
  ChunkFile file("/nonexistent", 100);
  ChunkFile::Chain chain;
  ::setenv("TMPDIR", "/nonexistent", 1);
  const bool is_kept = file.append(chain, "text"), is_too_much = !file.append(chain, text_of(100));
  folder ? ::setenv("TMPDIR", folder->c_str(), 1) : ::unsetenv("TMPDIR");
  CHECK(is_kept);
  CHECK(is_too_much);
  CHECK(file.memory_bytes() == 4);
  REQUIRE(file.append(chain, text_of(100)));
  CHECK(file.memory_bytes() == 0);
  CHECK(file.read(chain, 0, 104) == "text" + text_of(100));
}

TEST_CASE("chunk file: what a full disk does not take is in memory until it does") {
  constexpr std::uint64_t chunk = ChunkFile::chunk_bytes, memory = 4 * chunk;
  ChunkFile file("/tmp", memory);
  ChunkFile::Chain first, second;
  const std::string text = text_of(3 * chunk), more = text_of(2 * chunk);
  {
    const FullDisk full(2 * chunk + 7);  // in the middle of a chunk
    REQUIRE(file.append(first, text));
    CHECK(file.memory_bytes() == chunk);
    REQUIRE(file.append(second, more));
    CHECK(file.memory_bytes() == 3 * chunk);
    CHECK(file.room() == 2 * chunk + memory);
    CHECK(!file.append(second, more));
    CHECK(file.memory_bytes() == 3 * chunk);
    REQUIRE(file.append(second, "end"));
    CHECK(file.read(first, 1, text.size() - 1) == text.substr(1));
    CHECK(file.read(second, 0, second.bytes) == more + "end");
    REQUIRE(file.append(second, more, true));
    CHECK(file.memory_bytes() > memory);
    file.release(first);  // its chunks are in the file, and are used first
    REQUIRE(file.append(first, more));
    CHECK(file.memory_bytes() == 4 * chunk + 3);
  }
  REQUIRE(file.append(first, "x"));
  CHECK(file.memory_bytes() == 0);
  CHECK(file.read(first, 0, first.bytes) == more + "x");
  CHECK(file.read(second, 0, second.bytes) == more + "end" + more);
}

TEST_CASE("chunk file: a chunk of which the disk has a part is read from both") {
  ChunkFile file("/tmp", ChunkFile::chunk_bytes);
  ChunkFile::Chain chain;
  const std::string text = text_of(50000);
  REQUIRE(file.append(chain, text.substr(0, 20000)));
  const FullDisk full(20005);
  REQUIRE(file.append(chain, text.substr(20000, 10)));
  REQUIRE(file.append(chain, text.substr(20010)));
  CHECK(file.memory_bytes() == 30000);
  CHECK(file.read(chain, 0, 50000) == text);
  CHECK(file.read(chain, 19990, 30) == text.substr(19990, 30));
  CHECK(file.read(chain, 20010, 30) == text.substr(20010, 30));
  file.release(chain);
  CHECK(file.memory_bytes() == 0);
  CHECK(file.bytes_in_use() == 0);
}

TEST_CASE("stack column: what was put comes back, and without stacks there is none") {
  const std::vector<EventStack> stacks{
      {Kind::malloc, 7}, {Kind::free, 0}, {Kind::mark, 0}, {Kind::realloc, 8388607}, {Kind::calloc, 0}};
  const auto same = [](const std::vector<EventStack>& a, const std::vector<EventStack>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](auto& x, auto& y) { return x.kind == y.kind && x.stack == y.stack; });
  };
  const auto column = take_stack_column(put_stack_column(stacks));
  CHECK(same(column, {{Kind::malloc, 7}, {Kind::malloc, 8388607}, {Kind::malloc, 0}}));
  std::vector<EventStack> with_frees = stacks;
  with_frees[1].stack = 3;
  const auto both = take_stack_column(put_stack_column(with_frees));
  CHECK(same(both, {{Kind::malloc, 7}, {Kind::free, 3}, {Kind::malloc, 8388607}, {Kind::malloc, 0}}));
  CHECK(put_stack_column(std::vector<EventStack>{{Kind::malloc, 0}, {Kind::free, 0}}).empty());
  CHECK(take_stack_column("").empty());
  const std::vector<EventStack> pools{{Kind::pool_malloc, 9}, {Kind::free, 0}, {Kind::malloc, 2}, {Kind::pool_free, 0}};
  CHECK(same(take_stack_column(put_stack_column(pools)), {{Kind::pool_malloc, 9}, {Kind::malloc, 2}}));
}
