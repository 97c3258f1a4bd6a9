// Tests blocks, epochs and turns on threads of the test, asleep and spinning.
#include "cmtreplay/worker/schedule.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace {

/// A made-up address of a block: the scheduler never looks into blocks.
void* block(std::uintptr_t number) { return reinterpret_cast<void*>(number << 4); }

struct Fixture {
  explicit Fixture(std::uint32_t spins, std::vector<std::uint32_t> lanes_by_epoch = {})
      : pending(std::move(lanes_by_epoch)) {
    pending.resize(16);
    schedule_open(&schedule, spins, pending.data(), 15);
  }

  struct schedule schedule;
  std::vector<std::uint32_t> pending;
};

}  // namespace

TEST_CASE("schedule: a block that is there is taken without a wait, and leaves the slot empty") {
  Fixture fixture(0);
  void* slot = nullptr;
  wait_counts counts{};
  schedule_put_block(&fixture.schedule, &slot, block(7));
  CHECK(schedule_take_block(&fixture.schedule, &slot, &counts) == block(7));
  CHECK(slot == nullptr);
  CHECK(counts.block_waits == 0);
}

TEST_CASE("schedule: a refused block is there too, and is NULL") {
  Fixture fixture(0);
  void* slot = nullptr;
  wait_counts counts{};
  schedule_put_block(&fixture.schedule, &slot, nullptr);
  CHECK(slot != nullptr);
  CHECK(schedule_take_block(&fixture.schedule, &slot, &counts) == nullptr);
  schedule_put_block(&fixture.schedule, &slot, nullptr);
  CHECK(schedule_take_own_block(&slot) == nullptr);
}

TEST_CASE("schedule: whoever needs a block waits for its maker, asleep or spinning") {
  for (const std::uint32_t spins : {0U, 1000000U}) {
    Fixture fixture(spins);
    constexpr std::uintptr_t count = 2000;
    std::vector<void*> slots(count);
    wait_counts counts{};
    std::thread taker([&] {
      for (std::uintptr_t i = 0; i < count; ++i)
        CHECK(schedule_take_block(&fixture.schedule, &slots[i], &counts) == block(i + 1));
    });
    for (std::uintptr_t i = 0; i < count; ++i) schedule_put_block(&fixture.schedule, &slots[i], block(i + 1));
    taker.join();
    for (const void* slot : slots) CHECK(slot == nullptr);
  }
}

TEST_CASE("schedule: what its maker wrote into a block is seen by its taker") {
  Fixture fixture(100);
  constexpr int count = 1000;
  std::vector<std::array<int, 4>> blocks(count);
  std::vector<void*> there(count), back(count);
  wait_counts counts{}, its_counts{};
  std::thread other([&] {
    for (int i = 0; i < count; ++i) {
      auto* const found =
          static_cast<std::array<int, 4>*>(schedule_take_block(&fixture.schedule, &there[i], &its_counts));
      CHECK((*found)[0] == i);
      (*found)[1] = i + 1;
      schedule_put_block(&fixture.schedule, &back[i], found);
    }
  });
  for (int i = 0; i < count; ++i) {
    blocks[i][0] = i;
    schedule_put_block(&fixture.schedule, &there[i], &blocks[i]);
    const auto* const found =
        static_cast<std::array<int, 4>*>(schedule_take_block(&fixture.schedule, &back[i], &counts));
    CHECK((*found)[1] == i + 1);
  }
  other.join();
}

TEST_CASE("schedule: no epoch begins before the one before the last has ended everywhere") {
  constexpr std::uint32_t epochs = 12, lanes = 3;
  Fixture fixture(0, std::vector<std::uint32_t>(epochs, lanes));
  std::array<std::atomic<int>, epochs> ended{};
  std::vector<wait_counts> counts(lanes);
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] {
      for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        schedule_begin_epoch(&fixture.schedule, epoch, &counts[lane]);
        if (epoch >= 2) CHECK(ended[epoch - 2] == lanes);
        ++ended[epoch];
        schedule_end_epoch(&fixture.schedule, epoch);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fixture.schedule.epochs_done == epochs);
}

TEST_CASE("schedule: epochs that end out of order are counted in order") {
  Fixture fixture(0, {1, 1, 1});
  schedule_end_epoch(&fixture.schedule, 1);
  CHECK(fixture.schedule.epochs_done == 0);
  schedule_end_epoch(&fixture.schedule, 0);
  CHECK(fixture.schedule.epochs_done == 2);
}

TEST_CASE("schedule: a count of an epoch long ago does not end the one in its place") {
  Fixture fixture(0, {1});
  for (std::uint32_t epoch = 0; epoch < 40; ++epoch) {
    CHECK(fixture.schedule.epochs_done == epoch);
    fixture.pending[epoch & 15] = 1;
    schedule_end_epoch(&fixture.schedule, epoch);
  }
}

TEST_CASE("schedule: turns are taken one at a time, in order") {
  Fixture fixture(0);
  constexpr std::uint32_t lanes = 3, rounds = 50;
  std::vector<std::uint32_t> order;
  std::vector<wait_counts> counts(lanes);
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        schedule_await_turn(&fixture.schedule, round * lanes + lane, &counts[lane]);
        order.push_back(lane);
        schedule_pass_turn(&fixture.schedule);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < order.size(); ++i) CHECK(order[i] == i % lanes);
}

// As in a replay, one lane makes blocks and another frees them, and slots are reused after two epochs. No taker may
// find the block that was in its slot before.
TEST_CASE("schedule: over a window of reused slots each taker finds its own block") {
  constexpr std::uint32_t epochs = 200, per_epoch = 32;
  Fixture fixture(50);
  std::vector<std::uint32_t> pending(256, 2);
  schedule_open(&fixture.schedule, 50, pending.data(), 255);
  std::vector<void*> slots(per_epoch * 3);
  const auto slot = [&](std::uint32_t epoch, std::uint32_t i) { return &slots[epoch % 3 * per_epoch + i]; };
  wait_counts makers{}, takers{};
  std::thread maker([&] {
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
      schedule_begin_epoch(&fixture.schedule, epoch, &makers);
      for (std::uint32_t i = 0; i < per_epoch; ++i)
        schedule_put_block(&fixture.schedule, slot(epoch, i), block(epoch * per_epoch + i + 1));
      schedule_end_epoch(&fixture.schedule, epoch);
    }
  });
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    schedule_begin_epoch(&fixture.schedule, epoch, &takers);
    for (std::uint32_t i = per_epoch; i-- > 0;)
      CHECK(schedule_take_block(&fixture.schedule, slot(epoch, i), &takers) == block(epoch * per_epoch + i + 1));
    schedule_end_epoch(&fixture.schedule, epoch);
  }
  maker.join();
}
