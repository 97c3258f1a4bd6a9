// Tests which lane an event goes to, and the control words before and after it.
#include "cmtreplay/plan/router.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace cmt::replay;
using cmt::Event;
using cmt::Kind;

namespace {

Event made_by(cmt::Tag tag, std::uint32_t thread) {
  return {.kind = Kind::malloc, .thread = thread, .size = 8, .tag = tag};
}
Event freed_by(cmt::Tag tag, std::uint32_t thread) { return {.kind = Kind::free, .thread = thread, .old_tag = tag}; }
Event of_thread(Kind kind, std::uint32_t thread) { return {.kind = kind, .thread = thread}; }

const char* control_name(std::uint64_t word) {
  static const std::map<std::uint64_t, const char*> names{
      {control_start, "start"},       {control_exit, "exit"},        {control_end, "end"},
      {control_epoch_begin, "epoch"}, {control_epoch_end, "/epoch"}, {control_await_turn, "await"},
      {control_pass_turn, "pass"},    {control_time, "time"},        {control_several, "several"}};
  return names.at(word >> 4 & 0xfffffff);
}

/// Routes events and shows the words of a lane.
class Routed {
 public:
  explicit Routed(Order order, bool timed = false)
      : router(writer_, order, timed, [this](std::uint32_t epoch, bool first) {
          CHECK(first == !epochs.contains(epoch));
          ++epochs[epoch];
        }) {}

  std::string lane(std::uint32_t number) const {
    const MappedMemory mapping(chunks_.memory(), chunks_.count() * chunk_words * sizeof(std::uint64_t));
    const std::uint64_t* const words = mapping.words() + writer_.first_chunk(number) * chunk_words;
    std::string text;
    for (std::size_t i = 0; i < writer_.position(number); ++i) {
      const std::uint64_t word = words[i];
      const auto kind = static_cast<operation>(word & 15);
      text += text.empty() ? "" : " ";
      if (kind == operation_control) {
        text += control_name(word);
        const bool argues = (word >> 4 & 0xfffffff) != control_exit && (word >> 4 & 0xfffffff) != control_end;
        if (argues) text += std::to_string(word >> 32);
        if ((word >> 4 & 0xfffffff) == control_time) text += "=" + std::to_string(words[++i]);
      } else {
        text += kind == operation_malloc         ? "malloc"
                : kind == operation_free_foreign ? "free_foreign"
                : kind == operation_take_block   ? "take"
                                                 : "free";
      }
    }
    return text;
  }

 private:
  PreparedChunks chunks_{64 << 20};
  LaneWriter writer_{chunks_};

 public:
  std::map<std::uint32_t, int> epochs;
  Router router;
};

}  // namespace

TEST_CASE("router: on one thread there are calls and an end") {
  Routed routed(Order::one_thread);
  for (const Event& event : {made_by(1, 0), made_by(2, 1), freed_by(1, 1), of_thread(Kind::thread_exit, 1)})
    routed.router.route(event);
  routed.router.finish();
  CHECK(routed.lane(0) == "malloc malloc free end");
}

TEST_CASE("router: each thread has a lane, the first one starts the others, and a lane that was left serves again") {
  Routed routed(Order::free);
  for (const Event& event :
       {made_by(1, 5), made_by(2, 7), freed_by(1, 7), of_thread(Kind::thread_exit, 7), made_by(3, 9)})
    routed.router.route(event);
  routed.router.finish();
  CHECK(routed.lane(0) == "malloc several0 epoch0 start1 start1 /epoch0 end");
  CHECK(routed.lane(1) == "epoch0 malloc free_foreign /epoch0 exit epoch0 malloc /epoch0 end");
  CHECK(routed.router.counts().threads == 3);
  CHECK(routed.router.counts().true_dependencies == 1);
  CHECK(routed.epochs == std::map<std::uint32_t, int>{{0, 3}});
}

TEST_CASE("router: calls after a thread's end begin no thread in a trace that has the starts of threads") {
  for (const bool has_starts : {true, false}) {
    CAPTURE(has_starts);
    Routed routed(Order::free);
    routed.router.route(made_by(1, 0));
    for (const std::uint32_t thread : {1, 2}) {
      if (has_starts) routed.router.route(of_thread(Kind::thread_start, thread));
      for (const Event& event : {made_by(thread + 1, thread), of_thread(Kind::thread_exit, thread),
                                 freed_by(thread + 1, thread), freed_by(0, thread)})
        routed.router.route(event);
    }
    routed.router.finish();
    CHECK(routed.router.counts().threads == (has_starts ? 3 : 5));
    if (!has_starts) continue;
    CHECK(routed.lane(0) == "malloc several0 epoch0 start1 free_foreign free start1 free_foreign free /epoch0 end");
    CHECK(routed.lane(1) == "epoch0 malloc /epoch0 exit epoch0 malloc /epoch0 exit");
  }
}

TEST_CASE("router: until a second thread comes there is no order, and then the slots of freed blocks are emptied") {
  Routed routed(Order::free);
  for (const Event& event : {made_by(1, 0), made_by(2, 0), freed_by(1, 0), made_by(3, 1)}) routed.router.route(event);
  CHECK(routed.lane(0) == "malloc malloc free several0 take epoch0 start1");
  CHECK(routed.lane(1) == "epoch0 malloc");
}

TEST_CASE("router: the lane left longest ago comes first") {
  Routed routed(Order::free);
  for (const Event& event : {made_by(1, 0), made_by(2, 1), made_by(3, 2), of_thread(Kind::thread_exit, 2),
                             of_thread(Kind::thread_exit, 1), of_thread(Kind::thread_start, 3)})
    routed.router.route(event);
  CHECK(routed.lane(0) == "malloc several0 epoch0 start1 start2 start2");
}

TEST_CASE("router: an epoch ends in all lanes that took part in it") {
  Routed routed(Order::free);
  routed.router.route(made_by(1, 0));
  routed.router.route(made_by(2, 1));
  for (cmt::Tag tag = 3; tag < 4 + epoch_operations; ++tag) routed.router.route(made_by(tag, 0));
  routed.router.route(freed_by(2, 1));
  routed.router.finish();
  CHECK(routed.lane(1) == "epoch0 malloc /epoch0 epoch1 free /epoch1 end");
  CHECK(routed.epochs == std::map<std::uint32_t, int>{{0, 2}, {1, 2}});
}

TEST_CASE("router: touches move epochs on, so that the slots that they leave are used again") {
  Routed routed(Order::free);
  routed.router.route(made_by(1, 0));
  routed.router.route(made_by(2, 1));
  const Event touched{.kind = Kind::touch, .count = 1, .alignment = 4096, .old_tag = 1};
  for (std::uint32_t i = 0; i < 10 * epoch_operations; ++i) routed.router.route(touched);
  routed.router.finish();
  CHECK(routed.epochs.size() == 11);
  CHECK(routed.router.planner().slots() <= slot_first + 2 + 3 * epoch_operations);
}

TEST_CASE("router: in strict order turns pass from lane to lane, and from a thread that ends to the first") {
  Routed routed(Order::strict);
  for (const Event& event :
       {made_by(1, 0), made_by(2, 1), made_by(3, 0), freed_by(3, 1), of_thread(Kind::thread_exit, 1)})
    routed.router.route(event);
  routed.router.finish();
  CHECK(routed.lane(0) == "malloc several0 start1 pass0 await2 malloc pass0 await4 end");
  CHECK(routed.lane(1) == "await1 malloc pass0 await3 free_foreign pass0 exit");
}

TEST_CASE("router: recorded times go along a tenth of a millisecond apart, each lane's own") {
  Routed routed(Order::one_thread, true);
  for (std::uint64_t i = 0; i < 4; ++i) {
    Event event = made_by(i + 1, 0);
    event.time_ns = 1000 + i * 60'000;
    routed.router.route(event);
  }
  CHECK(routed.lane(0) == "malloc malloc time0=120000 malloc malloc");
}

TEST_CASE("router: a mark starts no thread") {
  Routed routed(Order::free);
  routed.router.route(made_by(1, 3));
  routed.router.route(of_thread(Kind::mark, 0));
  CHECK(routed.router.counts().threads == 1);
}
