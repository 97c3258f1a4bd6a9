#include "cmtreplay/prepared_trace.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

using namespace cmt::replay;

namespace {

PreparedTrace prepared(const std::string& text) {
  const int fd = memfd_create("trace", MFD_CLOEXEC);
  REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  lseek(fd, 0, SEEK_SET);
  cmt::Reader reader(fd, "test.trace");
  return PreparedTrace(reader, [](const cmt::Reader&) {});
}

}  // namespace

TEST_CASE("prepared trace: live bytes, peaks and what is left out are counted") {
  const PreparedTrace trace = prepared(
      "malloc(100) = 1000<1>\n"
      "malloc(50) = 2000<2>\n"
      "free(1000<1>)\n"
      "malloc(8) = 0\n"
      "thread_exit() thread=1\n"
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
  CHECK(trace.words() == 4);
  CHECK(trace.pointers() == 3);
}

TEST_CASE("prepared trace: a word is led back to its event, over events without operations and longer ones") {
  const PreparedTrace trace = prepared(
      "malloc(1) = 1000<1>\n"      // word 0
      "thread_start() thread=1\n"  // none
      "calloc(2, 3) = 2000<2>\n"   // words 1, 2
      "free(1000<1>)\n"            // word 3
      "malloc(9) = 0\n"            // none
      "malloc(9) = 0\n"            // none
      "free(2000<2>)\n");          // word 4
  CHECK(trace.event_at(0) == 1);
  CHECK(trace.event_at(1) == 3);
  CHECK(trace.event_at(3) == 4);
  CHECK(trace.event_at(4) == 7);
}

TEST_CASE("prepared trace: an empty trace has nothing to do") {
  const PreparedTrace trace = prepared("");
  CHECK(trace.words() == 0);
  CHECK(trace.marks().empty());
  CHECK(trace.event_at(0) == 0);
}

TEST_CASE("prepared trace: more words than are buffered are all there") {
  std::string text;
  for (int tag = 1; tag <= 100000; ++tag)
    text += "malloc(" + std::to_string(tag % 7) + ") = <" + std::to_string(tag) + ">\n";
  const PreparedTrace trace = prepared(text);
  CHECK(trace.words() == 100000);
  CHECK(trace.event_at(77777) == 77778);
  std::vector<std::uint64_t> storage(1);
  CHECK(trace.operations().read(99999, storage)[0] == operation_word(operation_malloc, slot_first + 99999, 100000 % 7));
}
