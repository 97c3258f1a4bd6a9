// Tests the operations of each kind of event, and when slots are reused.
#include "cmtreplay/plan/planner.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cmt::replay;
using cmt::Event;
using cmt::Kind;

namespace {

Event made(cmt::Tag tag, std::uint64_t size, Kind kind = Kind::malloc) {
  return {.kind = kind, .size = size, .tag = tag};
}
Event freed(cmt::Tag tag, Kind kind = Kind::free) { return {.kind = kind, .old_tag = tag}; }
Event resized(cmt::Tag old_tag, cmt::Tag tag, std::uint64_t size) {
  return {.kind = Kind::realloc, .size = size, .tag = tag, .old_tag = old_tag};
}

std::vector<std::uint64_t> words(const Step& step) { return {step.words().begin(), step.words().end()}; }
std::vector<std::uint64_t> words_of(Planner& planner, const Event& event) { return words(planner.plan(event)); }

operation kind_of(const Step& step) { return static_cast<operation>(step.words()[0] & 15); }
std::uint64_t slot_of(const Step& step) { return step.words()[0] >> 4 & 0xfffffff; }

}  // namespace

TEST_CASE("planner: a malloc is one word of call, slot and size") {
  Planner planner;
  CHECK(words_of(planner, made(1, 100)) ==
        std::vector<std::uint64_t>{operation_word(operation_malloc, slot_first, 100)});
}

TEST_CASE("planner: a size of 4 GiB less one and more stands in the next word") {
  Planner planner;
  CHECK(words_of(planner, made(1, 0xfffffffe)).size() == 1);
  CHECK(words_of(planner, made(2, 0xffffffff)) ==
        std::vector<std::uint64_t>{operation_word(operation_malloc, slot_first + 1, SIZE_IN_NEXT_WORD), 0xffffffff});
  CHECK(words_of(planner, made(3, std::uint64_t{5} << 32)).back() == std::uint64_t{5} << 32);
}

TEST_CASE("planner: the slot freed last is reused first") {
  Planner planner;
  for (cmt::Tag tag = 1; tag <= 3; ++tag) planner.plan(made(tag, 8));
  planner.plan(freed(1));
  planner.plan(freed(3));
  CHECK(slot_of(planner.plan(made(4, 8))) == slot_first + 2);
  CHECK(slot_of(planner.plan(made(5, 8))) == slot_first + 0);
  CHECK(planner.slots() == slot_first + 3);
}

TEST_CASE("planner: a realloc keeps its slot, and the old size goes along once it is more than a page") {
  Planner planner;
  planner.plan(made(1, 4096));
  const Step small = planner.plan(resized(1, 2, 5000));
  CHECK(kind_of(small) == operation_realloc);
  CHECK(slot_of(small) == slot_first);
  CHECK(words_of(planner, resized(2, 3, 9000)) ==
        std::vector<std::uint64_t>{operation_word(operation_realloc_from, slot_first, 9000), 5000});
  CHECK(planner.live().bytes == 9000);
  CHECK(planner.live().blocks == 1);
}

TEST_CASE("planner: a realloc of NULL is told apart, and one to 0 bytes that returned NULL is a free") {
  Planner planner;
  CHECK(kind_of(planner.plan(resized(0, 1, 8))) == operation_realloc_new);
  CHECK(kind_of(planner.plan(resized(1, 0, 0))) == operation_free);
  CHECK(planner.live().blocks == 0);
}

TEST_CASE("planner: a realloc to 0 bytes that returned a block is a realloc") {
  Planner planner;
  planner.plan(made(1, 8));
  CHECK(kind_of(planner.plan(resized(1, 2, 0))) == operation_realloc);
  CHECK(planner.live().blocks == 1);
}

TEST_CASE("planner: free(NULL) is replayed, from the slot of NULL") {
  Planner planner;
  CHECK(words_of(planner, freed(0)) == std::vector<std::uint64_t>{operation_word(operation_free, slot_null, 0)});
}

TEST_CASE("planner: a refused call is left out, and its block lives on") {
  Planner planner;
  planner.plan(made(1, 8));
  const Step step = planner.plan(resized(1, 0, 1 << 20));
  CHECK(step.outcome == Outcome::failed);
  CHECK(step.words().empty());
  CHECK(planner.plan(made(0, 8)).outcome == Outcome::failed);
  CHECK(planner.live().bytes == 8);
}

TEST_CASE("planner: malloc(0) that returned NULL is made and freed at once") {
  Planner planner;
  CHECK(words_of(planner, made(0, 0)) == std::vector<std::uint64_t>{operation_word(operation_malloc, slot_scratch, 0),
                                                                    operation_word(operation_free, slot_scratch, 0)});
  CHECK(planner.live().blocks == 0);
}

TEST_CASE("planner: the free of an unknown block is left out, its realloc becomes one of NULL") {
  Planner planner;
  CHECK(planner.plan(freed(7)).outcome == Outcome::unknown);
  CHECK(planner.plan(freed(7)).words().empty());
  const Step step = planner.plan(resized(7, 8, 16));
  CHECK(step.outcome == Outcome::unknown);
  CHECK(kind_of(step) == operation_realloc_new);
  CHECK(kind_of(planner.plan(freed(8))) == operation_free);
}

TEST_CASE("planner: counts and alignments follow as words") {
  Planner planner;
  Event zeroed = made(1, 8, Kind::calloc);
  zeroed.count = 12;
  CHECK(words_of(planner, zeroed) == std::vector<std::uint64_t>{operation_word(operation_calloc, slot_first, 8), 12});
  CHECK(planner.live().bytes == 96);
  for (const Kind kind : {Kind::aligned_alloc, Kind::posix_memalign, Kind::memalign, Kind::operator_new}) {
    Event aligned = made(static_cast<cmt::Tag>(kind) + 10, 128, kind);
    aligned.alignment = 64;
    CHECK(words_of(planner, aligned).back() == 64);
  }
}

TEST_CASE("planner: a reallocarray takes its count and the old size along") {
  Planner planner;
  planner.plan(made(1, 30));
  Event event = resized(1, 2, 8);
  event.kind = Kind::reallocarray;
  event.count = 5;
  CHECK(words_of(planner, event) ==
        std::vector<std::uint64_t>{operation_word(operation_reallocarray, slot_first, 8), 5, 30});
  CHECK(planner.live().bytes == 40);
}

TEST_CASE("planner: operator new is malloc, and every delete is free") {
  Planner planner;
  cmt::Tag tag = 0;
  for (const Kind kind : {Kind::operator_delete, Kind::operator_delete_array}) {
    CHECK(kind_of(planner.plan(made(++tag, 24, Kind::operator_new_array))) == operation_malloc);
    CHECK(kind_of(planner.plan(freed(tag, kind))) == operation_free);
  }
}

TEST_CASE("planner: a sized free states the block's size, and its alignment before it") {
  Planner planner;
  for (const Kind kind : {Kind::operator_delete_sized, Kind::operator_delete_array_sized, Kind::free_sized}) {
    planner.plan(made(1, 24));
    Event event = freed(1, kind);
    event.size = 24;
    CHECK(words_of(planner, event) == std::vector<std::uint64_t>{operation_word(operation_free_sized, slot_first, 24)});
  }
  planner.plan(made(1, 24));
  Event aligned = freed(1, Kind::free_aligned_sized);
  aligned.size = 24;
  aligned.alignment = 64;
  CHECK(words_of(planner, aligned) ==
        std::vector<std::uint64_t>{operation_word(operation_control, control_alignment, 6),
                                   operation_word(operation_free_sized, slot_first, 24)});
}

TEST_CASE("planner: a free that states another size than the block's states none") {
  Planner planner;
  planner.plan(made(1, 24));
  Event event = freed(1, Kind::free_sized);
  event.size = 16;
  CHECK(kind_of(planner.plan(event)) == operation_free);
}

TEST_CASE("planner: on several lanes the free of another lane's block is told apart") {
  Planner planner(Order::free);
  planner.plan(made(1, 8), 0);
  planner.plan(made(2, 8), 1);
  CHECK(kind_of(planner.plan(freed(1), 1)) == operation_free_foreign);
  const Step own = planner.plan(freed(2), 1);
  CHECK(kind_of(own) == operation_free);
  CHECK(!own.foreign);
}

TEST_CASE("planner: in free order a slot is reused from the epoch after the next on") {
  Planner planner(Order::free);
  planner.plan(made(1, 8));
  planner.plan(freed(1));
  CHECK(slot_of(planner.plan(made(2, 8))) == slot_first + 1);
  planner.begin_epoch();
  CHECK(slot_of(planner.plan(made(3, 8))) == slot_first + 2);
  planner.begin_epoch();
  CHECK(slot_of(planner.plan(made(4, 8))) == slot_first);
  CHECK(planner.slots() == slot_first + 3);
}

TEST_CASE("planner: on several lanes a realloc takes its block out of the old slot and has a new one") {
  Planner planner(Order::free);
  planner.plan(made(1, 8), 0);
  const Step step = planner.plan(resized(1, 2, 16), 1);
  CHECK(words(step) == std::vector<std::uint64_t>{operation_word(operation_take_block, slot_first, 1),
                                                  operation_word(operation_realloc, slot_first + 1, 16)});
  CHECK(step.operations == 1);
  CHECK(step.foreign);
  CHECK(words_of(planner, resized(2, 3, 24)).size() == 2);
}

TEST_CASE("planner: on several lanes each has a NULL of its own") {
  Planner planner(Order::free);
  const auto first = slot_of(planner.plan(freed(0), 0));
  CHECK(slot_of(planner.plan(freed(0), 0)) == first);
  CHECK(slot_of(planner.plan(freed(0), 1)) != first);
}

TEST_CASE("planner: in strict order, slots are reused at once") {
  Planner planner(Order::strict);
  planner.plan(made(1, 8), 0);
  planner.plan(freed(1), 1);
  CHECK(slot_of(planner.plan(made(2, 8), 2)) == slot_first);
}

TEST_CASE("planner: threads, marks and samples are no calls") {
  Planner planner;
  for (const Kind kind : {Kind::thread_start, Kind::thread_exit, Kind::thread_name, Kind::mark, Kind::sample})
    CHECK(planner.plan({.kind = kind}).outcome == Outcome::other);
}
