// Tests that chunks are linked, that a file takes what memory does not hold, and that a ring reuses chunks.
#include "cmtreplay/plan/chunks.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

using namespace cmt::replay;

namespace {

std::uint64_t word(std::uint32_t size) { return operation_word(operation_malloc, slot_first, size); }

}  // namespace

TEST_CASE("lanes: an operation never lies across two chunks, and a link leads from one to the next") {
  PreparedChunks chunks(64 << 20);
  LaneWriter writer(chunks);
  for (std::uint32_t i = 0; i < 1021; ++i) writer.append(0, word(i));
  const std::array<std::uint64_t, 3> three{word(7), word(8), word(9)};
  writer.append(0, three);
  CHECK(writer.position(0) == 1024 + 3);
  const MappedMemory mapping(chunks.memory(), 2 * chunk_words * sizeof(std::uint64_t));
  const std::uint64_t* const words = mapping.words();
  CHECK(words[1020] == word(1020));
  CHECK(words[1021] == operation_word(operation_control, control_link, 1));
  CHECK(words[1024 + 2] == word(9));
}

TEST_CASE("lanes: each has chunks of its own, from its first word on") {
  PreparedChunks chunks(64 << 20);
  LaneWriter writer(chunks);
  writer.append(2, word(1));
  writer.append(0, word(2));
  CHECK(writer.lanes() == 3);
  CHECK(writer.position(1) == 0);
  CHECK(writer.first_chunk(2) == 0);
  CHECK(writer.first_chunk(0) == 1);
}

TEST_CASE("chunks: what goes beyond the limit is in a file, with what was in memory before") {
  PreparedChunks chunks(4 << 20);
  LaneWriter writer(chunks);
  for (std::uint32_t i = 0; i < 600000; ++i) writer.append(i % 2, word(i));
  writer.finish();
  CHECK(!chunks.in_memory());
  REQUIRE(chunks.kept());
  CHECK(chunks.count() == 588);  // of 1,023 operations and a link each
  std::vector<std::uint64_t> words(chunk_words);
  std::uint32_t seen[2] = {0, 0};
  for (std::uint32_t number = 0; number < chunks.count(); ++number) {
    chunks.read(number, words.data());
    const auto [lane, used] = chunks.closed(number);
    for (std::uint32_t i = 0; i < used; ++i) REQUIRE(words[i] == word(lane + 2 * seen[lane]++));
  }
  CHECK(seen[0] == 300000);
  CHECK(seen[1] == 300000);
}

TEST_CASE("chunks: where no file can be written none are kept, and lanes may write on") {
  const char* const folder = std::getenv("TMPDIR");
  const std::string before = folder ? folder : "";
  setenv("TMPDIR", "/proc", 1);
  PreparedChunks chunks(4 << 20);
  LaneWriter writer(chunks);
  for (std::uint32_t i = 0; i < 600000; ++i) writer.append(i % 2, word(i));
  writer.finish();
  folder ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  CHECK(!chunks.kept());
  CHECK(!chunks.in_memory());
  CHECK(chunks.problem().starts_with("a temporary file in /proc"));
  CHECK(writer.position(0) > 300000);
}

TEST_CASE("chunks: a ring gives out again what came back, and asks for more when it is empty") {
  std::vector<std::uint8_t> freed(4);
  int asked = 0;
  ChunkRing ring(4, [&] {
    ++asked;
    freed[2] = 1;
  });
  ring.attach(freed.data());
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(ring.next_chunk().number == i);
  CHECK(ring.next_chunk().number == 2);
  CHECK(asked == 1);
  CHECK(freed[2] == 0);
}
