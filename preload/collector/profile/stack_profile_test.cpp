// Checks the sums of stacks: full recordings, weights of samples while the interval rises, and joined stacks.

#include "preload/collector/profile/stack_profile.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <random>
#include <string>

#include "preload/collector/profile/profile_files.h"

using namespace cmt;
using namespace cmt::collector;

namespace {

class ProfiledBlocks {
 public:
  explicit ProfiledBlocks(std::uint64_t interval) : profile(interval) {}

  void add(const Event& event, std::uint64_t old_bytes = 0) {
    EventBatch batch;
    batch.next_other() = {event, {event.old_tag, 0, old_bytes}};
    batch.append_next_other();
    profile.add(batch);
  }
  void make(Tag tag, std::uint64_t bytes, StackId stack) {
    add({.kind = Kind::malloc, .size = bytes, .tag = tag, .address = 16 * tag, .stack = stack});
  }
  void end(Kind kind, Tag tag) { add({.kind = kind, .old_tag = tag, .old_address = 16 * tag}); }
  void raise(std::uint64_t interval) { add({.kind = Kind::sampling_interval, .size = interval}); }

  std::array<double, 4> sums(StackId stack) const {
    for (const auto& entry : profile.entries()) {
      if (entry.stack == stack) return entry.sums;
    }
    return {};
  }

  StackProfile profile;
};

double blocks_for(double bytes, double interval) { return 1 / (1 - std::exp(-bytes / interval)); }

}  // namespace

TEST_CASE("stack profile: each block counts once without sampling") {
  ProfiledBlocks fixture(0);
  fixture.make(1, 100, 7);
  fixture.make(2, 50, 7);
  fixture.make(3, 0, 9);
  fixture.end(Kind::free, 1);
  CHECK(fixture.sums(7) == std::array<double, 4>{2, 150, 1, 50});
  CHECK(fixture.sums(9) == std::array<double, 4>{1, 0, 1, 0});
  // A realloc that was refused ends nothing; the next one does. A free of an unknown block changes nothing.
  fixture.add({.kind = Kind::realloc, .size = 80, .old_tag = 2, .old_address = 32, .stack = 9}, 50);
  CHECK(fixture.sums(7) == std::array<double, 4>{2, 150, 1, 50});
  fixture.add(
      {.kind = Kind::realloc, .size = 80, .tag = 4, .old_tag = 2, .address = 64, .old_address = 32, .stack = 9});
  fixture.end(Kind::free, 77);
  CHECK(fixture.sums(7) == std::array<double, 4>{2, 150, 0, 0});
  CHECK(fixture.sums(9) == std::array<double, 4>{2, 80, 2, 80});
}

TEST_CASE("stack profile: the short form of events") {
  StackProfile profile(0);
  EventBatch batch;
  batch.stack_room()[0] = 3;
  batch.room()[0] = {.address = 16, .tag = 1, .block_size = 40, .size = 40, .kind = Kind::malloc, .makes_block = true};
  batch.append(1);
  batch.stack_room()[0] = 4;
  batch.room()[0] = {.address = 32, .tag = 2, .block_size = 60, .size = 60, .kind = Kind::malloc, .makes_block = true};
  batch.append(1);
  batch.stack_room()[0] = 4;  // of the free, not of the block
  batch.room()[0] = {.address = 16, .tag = 1, .block_size = 40, .kind = Kind::free};
  batch.append(1);
  profile.add(batch);
  REQUIRE(profile.entries().size() == 2);
  CHECK(profile.entries()[0].sums == std::array<double, 4>{1, 40, 0, 0});
  CHECK(profile.entries()[1].sums == std::array<double, 4>{1, 60, 1, 60});
}

TEST_CASE("stack profile: allocated by the interval of then, live by that of now") {
  ProfiledBlocks fixture(1000);
  fixture.make(1, 500, 1);
  fixture.make(2, 800, 1);
  fixture.end(Kind::unsample, 1);
  fixture.raise(2000);
  fixture.make(3, 500, 1);
  const auto sums = fixture.sums(1);
  CHECK(sums[0] == doctest::Approx(blocks_for(500, 1000) + blocks_for(800, 1000) + blocks_for(500, 2000)));
  CHECK(sums[1] ==
        doctest::Approx(500 * blocks_for(500, 1000) + 800 * blocks_for(800, 1000) + 500 * blocks_for(500, 2000)));
  CHECK(sums[2] == doctest::Approx(blocks_for(800, 2000) + blocks_for(500, 2000)));
  CHECK(sums[3] == doctest::Approx(800 * blocks_for(800, 2000) + 500 * blocks_for(500, 2000)));
  CHECK(fixture.profile.interval() == 2000);
  CHECK(fixture.profile.raises() == 1);
  CHECK(fixture.profile.blocks_made() == 3);
  CHECK(fixture.profile.blocks_live() == 2);
}

TEST_CASE("stack profile: estimates have no bias while the interval rises") {
  // A sampler as the specification states it: samples are thinned by p(S, R) / p(S, Q) before the interval rises.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> chance;
  double allocated = 0, live = 0, estimated_allocated = 0, estimated_live = 0;
  for (int run = 0; run < 40; ++run) {
    ProfiledBlocks fixture(256);
    double interval = 256;
    std::map<Tag, std::uint64_t> samples;
    for (Tag tag = 1; tag <= 3000; ++tag) {
      const std::uint64_t bytes = 1 + random() % 400;
      const bool dies = tag % 3 == 0;
      allocated += static_cast<double>(bytes);
      live += dies ? 0 : static_cast<double>(bytes);
      if (chance(random) * blocks_for(static_cast<double>(bytes), interval) < 1) {
        fixture.make(tag, bytes, static_cast<StackId>(tag % 5));
        if (dies) fixture.end(Kind::free, tag);
        if (!dies) samples[tag] = bytes;
      }
      if (tag % 1000 != 0) continue;
      for (auto sample = samples.begin(); sample != samples.end();) {
        const double size = static_cast<double>(sample->second);
        const bool stays = chance(random) < blocks_for(size, interval) / blocks_for(size, 2 * interval);
        if (!stays) fixture.end(Kind::unsample, sample->first);
        sample = stays ? std::next(sample) : samples.erase(sample);
      }
      interval *= 2;
      fixture.raise(static_cast<std::uint64_t>(interval));
    }
    for (const auto& entry : fixture.profile.entries()) {
      estimated_allocated += entry.sums[1];
      estimated_live += entry.sums[3];
    }
  }
  CHECK(estimated_allocated / allocated == doctest::Approx(1).epsilon(0.02));
  CHECK(estimated_live / live == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("stack profile: the smallest stacks are joined, by live and by allocated bytes") {
  std::vector<StackProfile::Entry> entries{
      {1, {1, 1, 1, 1}}, {2, {9, 900, 0, 0}}, {3, {1, 5, 1, 5}}, {4, {2, 6, 1, 1}}, {5, {1, 2, 0, 0}}};
  CHECK(join_smallest(entries, 5) == 0);
  CHECK(entries.size() == 5);
  CHECK(join_smallest(entries, 2) == 3);
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].stack + entries[1].stack == 5);  // 2, with most allocated bytes, and 3, with most live ones
  CHECK(entries[2].stack == joined_stacks);
  CHECK(entries[2].sums == std::array<double, 4>{4, 9, 2, 2});
}

TEST_CASE("profile: the frame between the call of a class and its __init__ is left out") {
  StackTable stacks;
  const ModuleId python = stacks.add_module({.path = std::string(python_module_path)});
  StackId stack = 0;
  std::uint64_t address = 0;
  for (const FrameName& name : {FrameName{.function = "main", .file = "app.py", .line = 7},
                                FrameName{.function = "__init__", .file = "__init__", .line = 0},
                                FrameName{.function = "__init__", .file = "app.py", .line = 3}}) {
    const FrameId frame = stacks.add_frame({python, ++address, true});
    stacks.set_names(frame, {&name, 1});
    stack = stacks.add_node({stack, frame});
  }
  ProfiledBlocks fixture(0);
  fixture.make(1, 100, stack);
  std::string message;
  write_profile(fixture.profile, stacks, {}, 0, 1, 0, [&](std::string_view bytes) { message += bytes; });
  constexpr protozero::pbf_tag_type sample = 2, location = 1;
  std::size_t samples = 0;
  for (protozero::pbf_reader reader(message); reader.next(sample); ++samples) {
    protozero::pbf_reader fields = reader.get_message();
    REQUIRE(fields.next(location));
    const auto ids = fields.get_packed_uint64();
    CHECK(std::vector<std::uint64_t>(ids.begin(), ids.end()) == std::vector<std::uint64_t>{4, 2});
  }
  CHECK(samples == 1);
}
