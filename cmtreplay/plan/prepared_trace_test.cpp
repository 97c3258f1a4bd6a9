#include "cmtreplay/plan/prepared_trace.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

using namespace cmt::replay;

namespace {

PreparedTrace::Open opener(const std::string& text) {
  return [text] {
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    lseek(fd, 0, SEEK_SET);
    return cmt::Reader(fd, "test.trace");
  };
}

PreparedTrace prepared(const std::string& text, TraceOptions options = {.prepared_bytes_max = 64 << 20}) {
  return PreparedTrace(opener(text), options, [](const cmt::Reader&) {});
}

constexpr const char* two_threads =
    "malloc(8) = 1000<1> thread=0\n"   // lane 0: epoch, malloc
    "malloc(8) = 2000<2> thread=1\n"   // lane 0: start; lane 1: epoch, malloc
    "free(1000<1>) thread=1\n"         // lane 1: the free of a foreign block
    "thread_exit() thread=1\n"         // lane 1: end of the epoch, exit
    "malloc(8) = 3000<3> thread=2\n";  // lane 0: start; lane 1: epoch, malloc

std::uint64_t event_at(const PreparedTrace& trace, std::uint32_t lane, std::uint64_t words) {
  return trace.events_at({{.lane = lane, .words = words}}, trace.order()).front();
}

}  // namespace

TEST_CASE("prepared trace: live bytes, peaks and what is left out are counted") {
  const PreparedTrace trace = prepared(
      "malloc(100) = 1000<1>\n"
      "malloc(50) = 2000<2>\n"
      "free(1000<1>)\n"
      "malloc(8) = 0\n"
      "thread_exit() thread=0\n"
      "malloc(60) = 1000<3>\n");
  const TraceFacts& facts = trace.facts();
  CHECK(facts.events == 6);
  CHECK(facts.calls == 4);
  CHECK(facts.failed_calls == 1);
  CHECK(facts.other_events == 1);
  CHECK(facts.peak_live.bytes == 150);
  CHECK(facts.peak_live.blocks == 2);
  CHECK(facts.peak_live_bytes_event == 2);
  CHECK(facts.end_live.bytes == 110);
  CHECK(trace.ends() == std::vector<std::uint64_t>{5});
  CHECK(trace.pointers() == 3);
}

TEST_CASE("prepared trace: a word is led back to its event, over events without operations and longer ones") {
  const PreparedTrace trace = prepared(
      "malloc(1) = 1000<1>\n"      // word 0
      "thread_start() thread=0\n"  // none
      "calloc(2, 3) = 2000<2>\n"   // words 1, 2
      "free(1000<1>)\n"            // word 3
      "malloc(9) = 0\n"            // none
      "malloc(9) = 0\n"            // none
      "free(2000<2>)\n");          // word 4
  CHECK(event_at(trace, 0, 0) == 1);
  CHECK(event_at(trace, 0, 1) == 3);
  CHECK(event_at(trace, 0, 3) == 4);
  CHECK(event_at(trace, 0, 4) == 7);
}

TEST_CASE("prepared trace: an empty trace has nothing to do") {
  const PreparedTrace trace = prepared("");
  CHECK(trace.facts().calls == 0);
  CHECK(trace.marks().empty());
  CHECK(trace.ends() == std::vector<std::uint64_t>{1});
  CHECK(event_at(trace, 0, 0) == 0);
}

TEST_CASE("prepared trace: more words than a chunk holds are linked, and found again") {
  std::string text;
  for (int tag = 1; tag <= 100000; ++tag)
    text += "malloc(" + std::to_string(tag % 7) + ") = <" + std::to_string(tag) + ">\n";
  const PreparedTrace trace = prepared(text);
  REQUIRE(trace.chunks());
  CHECK(trace.chunks()->count() == 98);  // of 1,023 operations and a link each
  CHECK(event_at(trace, 0, 1023) == 1024);
  CHECK(event_at(trace, 0, 1024) == 1024);
  CHECK(event_at(trace, 0, 76 * 1024 + 9) == 76 * 1023 + 10);
  std::vector<std::uint64_t> storage(1024);
  const auto words = trace.chunks()->memory().read(0, storage);
  CHECK(words[0] == operation_word(operation_malloc, slot_first, 1));
  CHECK(words[1023] == operation_word(operation_control, control_link, 1));
}

TEST_CASE("prepared trace: what is too large is not kept but streamed") {
  std::string text;
  for (int tag = 1; tag <= 1000000; ++tag) text += "malloc(1) = <" + std::to_string(tag) + ">\n";
  const PreparedTrace trace = prepared(text, {.prepared_bytes_max = 4 << 20});
  CHECK(trace.chunks() == nullptr);
  CHECK(trace.operations_bytes() == 0);
  CHECK(trace.facts().calls == 1000000);
  CHECK(trace.marks().size() == 100);
}

TEST_CASE("prepared trace: threads have lanes, and a lane serves one thread after the other") {
  const PreparedTrace trace = prepared(two_threads);
  CHECK(trace.order() == Order::free);
  CHECK(trace.lanes() == 2);
  CHECK(trace.counts().threads == 3);
  CHECK(trace.counts().true_dependencies == 1);
  CHECK(trace.epochs() == std::vector<std::uint32_t>{3});
  CHECK(event_at(trace, 1, 1) == 2);
  CHECK(event_at(trace, 1, 2) == 3);
  CHECK(event_at(trace, 1, 6) == 5);
}

TEST_CASE("prepared trace: on one thread, or in strict order, where that is asked for") {
  const PreparedTrace one = prepared(two_threads, {.threads = false, .prepared_bytes_max = 1 << 22});
  CHECK(one.order() == Order::one_thread);
  CHECK(one.lanes() == 1);
  CHECK(one.slots() == slot_first + 2);
  const PreparedTrace strict = prepared(two_threads, {.strict = true, .prepared_bytes_max = 1 << 22});
  CHECK(strict.order() == Order::strict);
  CHECK(strict.counts().turns > 2);
}
