// Tests the operations for touched pages and for calls that give memory back.
#include <doctest/doctest.h>

#include <vector>

#include "cmtreplay/plan/planner.h"

using namespace cmt::replay;
using cmt::Event;
using cmt::Kind;

namespace {

Event block_of(cmt::Tag tag, std::uint64_t size) { return {.kind = Kind::malloc, .size = size, .tag = tag}; }
Event end_of(cmt::Tag tag) { return {.kind = Kind::free, .old_tag = tag}; }
Event pages_of(cmt::Tag tag, std::uint64_t offset, std::uint64_t count, std::uint64_t page = 4096) {
  return {.kind = Kind::touch, .size = offset, .count = count, .alignment = page, .old_tag = tag};
}

std::vector<std::uint64_t> step_words(Planner& planner, const Event& event, std::uint32_t lane = 0) {
  const Step step = planner.plan(event, lane);
  return {step.words().begin(), step.words().end()};
}

using Words = std::vector<std::uint64_t>;

std::uint64_t touch_word(std::uint32_t slot) { return operation_word(operation_control, control_touch, slot); }
std::uint64_t give_back_word(give_back call) { return operation_word(operation_control, control_give_back, call); }

}  // namespace

TEST_CASE("touch: a run of pages is offset, count, distance, and the size where it reaches the block's end") {
  Planner planner;
  planner.plan(block_of(1, 100000));
  CHECK(step_words(planner, pages_of(1, 4080, 3)) == Words{touch_word(slot_first), 4080, 3, 4096, 0});
  CHECK(step_words(planner, pages_of(1, 8176, 0)) == Words{touch_word(slot_first), 8176, 23, 4096, 100000});
  CHECK(planner.plan(pages_of(1, 0, 1)).outcome == Outcome::touch);
  CHECK(planner.plan(pages_of(1, 0, 1)).operations == 0);
}

TEST_CASE("touch: pages behind the block's end are left out, and those of unknown blocks") {
  Planner planner;
  planner.plan(block_of(1, 10000));
  CHECK(step_words(planner, pages_of(1, 4096, 9)) == Words{touch_word(slot_first), 4096, 2, 4096, 0});
  CHECK(step_words(planner, pages_of(1, 10000, 1)).empty());
  CHECK(step_words(planner, pages_of(1, 0, 1, 0)).empty());
  CHECK(planner.plan(pages_of(7, 0, 1)).outcome == Outcome::other);
}

TEST_CASE("discard: an offset and bytes, within the block; with several lanes it moves on as with a touch") {
  const auto discard_word = [](std::uint32_t slot) { return operation_word(operation_control, control_discard, slot); };
  const auto discard_of = [](cmt::Tag tag, std::uint64_t offset, std::uint64_t bytes) {
    return Event{.kind = Kind::discard, .size = offset, .count = bytes, .old_tag = tag};
  };
  Planner planner;
  planner.plan(block_of(1, 10000));
  CHECK(step_words(planner, discard_of(1, 4080, 4096)) == Words{discard_word(slot_first), 4080, 4096});
  CHECK(step_words(planner, discard_of(1, 4080, 8192)) == Words{discard_word(slot_first), 4080, 5920});
  CHECK(step_words(planner, discard_of(1, 10000, 1)).empty());
  CHECK(planner.plan(discard_of(1, 0, 1)).outcome == Outcome::discard);
  CHECK(planner.plan(discard_of(7, 0, 1)).outcome == Outcome::other);
  Planner several(Order::free);
  several.plan(block_of(1, 8192), 1);
  CHECK(step_words(several, discard_of(1, 0, 4096), 1) ==
        Words{operation_word(operation_take_block, slot_first, 0), discard_word(slot_first + 1), 0, 4096});
}

TEST_CASE("touch: with several lanes a block goes on to another slot, where its end waits") {
  Planner planner(Order::free);
  planner.plan(block_of(1, 8192), 1);
  CHECK(step_words(planner, pages_of(1, 0, 2), 1) ==
        Words{operation_word(operation_take_block, slot_first, 0), touch_word(slot_first + 1), 0, 2, 4096, 0});
  CHECK(planner.lane_of(1) == 1);
  CHECK(step_words(planner, pages_of(1, 0, 1), 2) ==
        Words{operation_word(operation_take_block, slot_first + 1, 1), touch_word(slot_first + 2), 0, 1, 4096, 0});
  CHECK(planner.lane_of(1) == 2);
  CHECK(step_words(planner, end_of(1), 0) == Words{operation_word(operation_free_foreign, slot_first + 2, 0)});
  CHECK(!planner.lane_of(1));
}

TEST_CASE("give back: calls with their arguments") {
  Planner planner;
  CHECK(step_words(planner, {.kind = Kind::malloc_trim, .size = 4096}) ==
        Words{give_back_word(give_back_trim), 4096, 0});
  CHECK(step_words(planner, {.kind = Kind::mallopt, .label = "M_ARENA_MAX=2"}) ==
        Words{give_back_word(give_back_mallopt), static_cast<std::uint32_t>(-8), 2});
  CHECK(step_words(planner, {.kind = Kind::mallctl, .label = "arena.4096.purge"}) ==
        Words{give_back_word(give_back_mallctl), std::uint64_t{4096} << 16, 0});
  CHECK(step_words(planner, {.kind = Kind::mallctl, .label = "arenas.dirty_decay_ms=-1"}) ==
        Words{give_back_word(give_back_mallctl), 4 | 1 << 8, ~std::uint64_t{0}});
}

TEST_CASE("give back: what might do something else is left out") {
  Planner planner;
  for (const char* const label :
       {"arena.0.reset", "prof.dump", "arena..purge", "arena.x.purge", "background_thread=on"}) {
    const Step step = planner.plan({.kind = Kind::mallctl, .label = label});
    CHECK(step.outcome == Outcome::give_back_left_out);
    CHECK(step.words().empty());
  }
  for (const char* const label : {"-12=1", "M_ARENA_MAX", "M_ARENA_MAX=", "M_ARENA_MAX=x"})
    CHECK(planner.plan({.kind = Kind::mallopt, .label = label}).outcome == Outcome::give_back_left_out);
}
