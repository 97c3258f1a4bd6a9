// --verify: each kind of fault in events, totals and blocks is reported once and with its place.

#include "trace2cmt/inspect/verify.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <vector>

#include "cmt/error.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/zstd.h"
#include "tests/format-spec/trace_fixture.h"
#include "tests/sampled_places.h"
#include "trace2cmt/inspect/info.h"

namespace cmt::trace2cmt {
namespace {

using namespace cmt::format;
using cmt::fixture::Addresses;

std::vector<std::string> faults_with(unsigned jobs, std::string_view bytes) {
  const int fd = cmt::fixture::file_of(bytes);
  std::vector<std::string> faults;
  try {
    verify({"/proc/self/fd/" + std::to_string(fd), {}}, jobs,
           [&](const std::string& place, const std::string& what, std::uint64_t) {
             faults.push_back(place + ": " + what);
           });
  } catch (const cmt::FormatError& error) {
    faults.emplace_back(error.what());
  }
  close(fd);
  return faults;
}

/// The faults of a file with these bytes, which are the same with one thread and with two.
std::vector<std::string> faults_of(std::string_view bytes) {
  const std::vector<std::string> faults = faults_with(1, bytes);
  CHECK(faults_with(2, bytes) == faults);
  return faults;
}

/// Random events that keep all invariants: blocks do not overlap, and times do not go back.
std::string whole_file() {
  std::vector<cmt::Event> events = cmt::fixture::random_events(7, Addresses::none, 200);
  for (cmt::Event& event : events) {
    if (event.tag != 0) event.address = event.tag << 32;
    if (event.old_tag >= cmt::fixture::RandomTrace::first_tag) event.old_address = event.old_tag << 32;
    if (event.bytes() >> 31 != 0) event.size = event.size != 0, event.count = 1;
    if (cmt::is_about_pages(event.kind)) event = {.kind = cmt::Kind::sample, .thread = event.thread};
  }
  return cmt::fixture::written(events, cmt::fixture::in_blocks_of(64));
}

/// One section of a file that a test changes. Its checksum and the offsets in index and tail are computed again.
struct Part {
  SectionType type;
  std::string header;
  std::string body;
};

std::vector<Part> parts_of(std::string_view file, std::size_t header_size) {
  std::vector<Part> parts;
  for (std::size_t at = header_size; at < file.size();) {
    const SectionStart start = take_section_start(file.substr(at));
    const std::size_t body = at + start.total() - start.body_size;
    parts.push_back({static_cast<SectionType>(start.type), std::string(take_section_header(file.substr(at), start)),
                     std::string(file.substr(body, start.body_size))});
    at += start.total();
  }
  return parts;
}

/// A file after `change` has changed its parts.
template <typename Change>
std::string changed(const Change& change) {
  const std::string whole = whole_file();
  const std::size_t header_size = file_header_size(whole).value();
  std::vector<Part> parts = parts_of(whole, header_size);
  change(parts);
  std::string file = whole.substr(0, header_size);
  std::vector<cmt::BlockStart> index;
  Tail tail{};
  for (const Part& part : parts) {
    std::string header = part.header;
    if (part.type == SectionType::block) {
      const BlockHeader block = BlockHeader::take(header);
      index.push_back(block.start_at(file.size()));
    }
    if (part.type == SectionType::index) tail.index_offset = file.size(), header = put_index(index);
    if (part.type == SectionType::totals) tail.totals_offset = file.size();
    if (part.type == SectionType::tail) {
      file += put_tail(tail.index_offset, tail.totals_offset);
    } else {
      file += put_section(part.type, header, static_cast<std::uint32_t>(part.body.size())) + part.body;
    }
  }
  return file;
}

bool has(const std::vector<std::string>& faults, std::string_view words) {
  for (const std::string& fault : faults) {
    if (fault.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("verify: sections in another order, twice, or not at all are faults") {
  CHECK(faults_of(changed([](auto&) {})).empty());
  CHECK(has(faults_of(changed([](auto& parts) { std::swap(parts[parts.size() - 4], parts[parts.size() - 3]); })),
            "a block after the index"));
  CHECK(has(faults_of(changed([](auto& parts) { parts.insert(parts.end() - 1, parts[parts.size() - 3]); })),
            "a second section of the index"));
  CHECK(has(faults_of(changed([](auto& parts) { parts.insert(parts.end() - 1, parts[parts.size() - 2]); })),
            "a second section of the totals"));
  CHECK(has(faults_of(changed([](auto& parts) { parts.erase(parts.end() - 2); })), "no totals where the tail says"));
  CHECK(has(faults_of(changed([](auto& parts) { parts.erase(parts.begin() + 1); })),
            "blocks are missing before this one"));
  CHECK(has(faults_of(changed([](auto& parts) { parts.pop_back(); })), "the end of the trace is missing"));
}

TEST_CASE("verify: a block that does not go on where the one before ended is a fault") {
  const std::string words = "the block does not begin with what the one before ended with";
  // The items of the block stay as they are, so its tags or threads contradict them, and there is more than one fault.
  for (int field = 0; field < 3; ++field) {
    const auto faults = faults_of(changed([&](std::vector<Part>& parts) {
      BlockHeader header = BlockHeader::take(parts[2].header);
      if (field == 0) header.core.next_tag += 1000;
      if (field == 1) header.core.named_tag += 1;
      if (field == 2) header.core.thread += 1;
      parts[2].header = header.put();
    }));
    CHECK(has(faults, words));
  }
}

TEST_CASE("verify: a block's time that is not the last one before is a fault") {
  CHECK(has(faults_of(changed([](auto& parts) {
              BlockHeader header = BlockHeader::take(parts[2].header);
              header.time_ns += 1;
              parts[2].header = header.put();
            })),
            "the block's time is not the last one before"));
}

TEST_CASE("verify: the first block is a keyframe, and a later one has a table of live blocks") {
  CHECK(has(faults_of(changed([](auto& parts) {
              BlockHeader header = BlockHeader::take(parts[0].header);
              header.keyframe = false;
              parts[0].header = header.put();
            })),
            "the first block is no keyframe"));
  CHECK(has(faults_of(changed([](auto& parts) {
              BlockHeader header = BlockHeader::take(parts[1].header);
              header.keyframe = true;
              parts[1].header = header.put();
            })),
            "a keyframe without a table of live blocks"));
}

TEST_CASE("verify: a keyframe's table that the events contradict is a fault") {
  const auto with_table = [](std::string_view raw) {
    return faults_of(changed([&](auto& parts) {
      BlockHeader header = BlockHeader::take(parts[1].header);
      const std::string frame(Compressor(3).compress(raw));
      header.keyframe = true;
      header.streams.push_back({static_cast<std::uint64_t>(StreamId::live), raw.size(), frame.size()});
      parts[1].header = header.put();
      parts[1].body += frame;
    }));
  };
  CHECK(has(with_table(std::string(1, '\0')), "the table of live blocks is not what the events before left alive"));
  CHECK(has(with_table("\x80"), "stream 3: byte 0: a number is cut off"));
}

TEST_CASE("verify: origins without a table of live blocks, or of no call, are a fault") {
  const auto with_origins = [](bool keyframe, std::string_view raw) {
    return faults_of(changed([&](auto& parts) {
      BlockHeader header = BlockHeader::take(parts[1].header);
      const auto append = [&](StreamId id, std::string_view content) {
        const std::string frame(Compressor(3).compress(content));
        header.streams.push_back({static_cast<std::uint64_t>(id), content.size(), frame.size()});
        parts[1].body += frame;
      };
      header.keyframe = keyframe;
      if (keyframe) append(StreamId::live, std::string_view("\1\1\1\0", 4));
      append(StreamId::origins, raw);
      parts[1].header = header.put();
    }));
  };
  CHECK(has(with_origins(false, "x"), "origins in a block without a table of live blocks"));
  CHECK(has(with_origins(true, std::string_view("\0\4\0\0\0\0", 6)), "stream 8: byte 1: a kind that makes no block"));
}

TEST_CASE("info: sizes of streams that do not add up to the block's body are an error") {
  const auto info = [](std::uint64_t more) {
    const int fd = cmt::fixture::file_of(changed([more](std::vector<Part>& parts) {
      BlockHeader header = BlockHeader::take(parts[1].header);
      header.streams.back().size += more;
      parts[1].header = header.put();
    }));
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const Info found = info_of({path, {}}, 1);
    return found;
  };
  REQUIRE(info(0).layout);
  CHECK(info(0).layout->other_bytes < info(0).file_bytes);
  for (const std::uint64_t more : {std::uint64_t{1}, std::uint64_t{1} << 20, std::uint64_t{0} - 1})
    CHECK_THROWS_AS(info(more), cmt::FormatError);
}

TEST_CASE("verify: a whole file has no fault") {
  const auto faults = faults_of(whole_file());
  CHECK_MESSAGE(faults.empty(), (faults.empty() ? "" : faults.front()));
}

TEST_CASE("verify: a cut at every length is a fault") {
  const std::string whole = whole_file();
  std::size_t missed = 0;
  for (std::size_t size = 1; size < whole.size(); size += cmt::fixture::place_step)
    missed += faults_of(whole.substr(0, size)).empty();
  CHECK(missed == 0);
}

TEST_CASE(
    "verify: a flipped bit in any byte is a fault, or one of the few that zstd ignores and that change no event") {
  const std::string whole = whole_file();
  const auto lines = cmt::fixture::read_all(whole).lines;
  std::size_t missed = 0, ignored = 0;
  for (std::size_t i = 0; i < whole.size(); i += cmt::fixture::place_step) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1 << i % 8);
    if (!faults_of(flipped).empty()) continue;
    ++ignored;
    missed += cmt::fixture::read_all(flipped).lines != lines;
  }
  CHECK(missed == 0);
  CHECK(ignored * 200 < whole.size());
}

}  // namespace cmt::trace2cmt
