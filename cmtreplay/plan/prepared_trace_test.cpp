// Tests the figures of a trace, its marks, and which event an operation comes from.
#include "cmtreplay/plan/prepared_trace.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

using namespace cmt::replay;

namespace {

PreparedTrace::Open opener(const std::string& text) {
  return [text](PreparedTrace::Stacks) {
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    lseek(fd, 0, SEEK_SET);
    return cmt::Reader(fd, "test.trace");
  };
}

PreparedTrace prepared(const std::string& text, TraceOptions options = {.prepared_bytes_max = 64 << 20}) {
  return PreparedTrace(opener(text), options, [](std::uint64_t, std::uint64_t) {});
}

constexpr const char* two_threads =
    "malloc(8) = 1000<1> thread=0\n"   // lane 0: malloc
    "malloc(8) = 2000<2> thread=1\n"   // lane 0: several, epoch, start; lane 1: epoch, malloc
    "free(1000<1>) thread=1\n"         // lane 1: the free of a foreign block
    "thread_exit() thread=1\n"         // lane 1: end of the epoch, exit
    "malloc(8) = 3000<3> thread=2\n";  // lane 0: start; lane 1: epoch, malloc

std::uint64_t event_at(const PreparedTrace& trace, std::uint32_t lane, std::uint64_t words) {
  return trace.events_at({{.lane = lane, .words = words}}, trace.plan().order).front();
}

std::vector<Mark> marks_of(std::uint64_t events, std::size_t count) {
  MarkCandidates candidates;
  for (std::uint64_t event = 1; event <= events; ++event) {
    if (candidates.wants(event)) candidates.add({.event = event, .live = {}, .positions = {2 * event}});
  }
  return candidates.choose(count, {.event = events, .live = {}, .positions = {2 * events}});
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
  const TraceFacts& facts = trace.plan().facts;
  CHECK(facts.events == 6);
  CHECK(facts.calls == 4);
  CHECK(facts.failed_calls == 1);
  CHECK(facts.other_events == 1);
  CHECK(facts.peak_live.bytes == 150);
  CHECK(facts.peak_live.blocks == 2);
  CHECK(facts.peak_live_bytes_event == 2);
  CHECK(facts.end_live.bytes == 110);
  CHECK(trace.plan().ends == std::vector<std::uint64_t>{5});
  CHECK(trace.plan().pointers == 3);
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
  CHECK(trace.plan().facts.calls == 0);
  CHECK(trace.plan().marks.empty());
  CHECK(trace.plan().ends == std::vector<std::uint64_t>{1});
  CHECK(event_at(trace, 0, 0) == 0);
}

TEST_CASE("prepared trace: more words than a chunk holds are linked, and found again") {
  std::string text;
  for (int tag = 1; tag <= 100000; ++tag)
    text += "malloc(" + std::to_string(tag % 7) + ") = <" + std::to_string(tag) + ">\n";
  const PreparedTrace trace = prepared(text);
  REQUIRE(trace.chunks().in_memory());
  CHECK(trace.chunks().count() == 98);  // of 1,023 operations and a link each
  CHECK(event_at(trace, 0, 1023) == 1024);
  CHECK(event_at(trace, 0, 1024) == 1024);
  CHECK(event_at(trace, 0, 76 * 1024 + 9) == 76 * 1023 + 10);
  const MappedMemory mapping(trace.chunks().memory(), chunk_words * sizeof(std::uint64_t));
  const std::uint64_t* const words = mapping.words();
  CHECK(words[0] == operation_word(operation_malloc, slot_first, 1));
  CHECK(words[1023] == operation_word(operation_control, control_link, 1));
}

TEST_CASE("prepared trace: what is too large for memory is in a file") {
  std::string text;
  for (int tag = 1; tag <= 1000000; ++tag) text += "malloc(1) = <" + std::to_string(tag) + ">\n";
  const PreparedTrace trace = prepared(text, {.prepared_bytes_max = 4 << 20});
  CHECK(!trace.chunks().in_memory());
  CHECK(trace.operations_bytes() == std::uint64_t{978} * chunk_words * sizeof(std::uint64_t));
  CHECK(trace.plan().facts.calls == 1000000);
  CHECK(trace.plan().marks.size() == 100);
}

TEST_CASE("prepared trace: threads have lanes, and a lane serves one thread after the other") {
  const PreparedTrace trace = prepared(two_threads);
  CHECK(trace.plan().order == Order::free);
  CHECK(trace.plan().lanes == 2);
  CHECK(trace.plan().counts.threads == 3);
  CHECK(trace.plan().counts.true_dependencies == 1);
  CHECK(trace.plan().epochs == std::vector<std::uint32_t>{3});
  CHECK(event_at(trace, 1, 1) == 2);
  CHECK(event_at(trace, 1, 2) == 3);
  CHECK(event_at(trace, 1, 6) == 5);
}

TEST_CASE("prepared trace: on one thread, or in strict order, where that is asked for") {
  const PreparedTrace one = prepared(two_threads, {.threads = false, .prepared_bytes_max = 1 << 22});
  CHECK(one.plan().order == Order::one_thread);
  CHECK(one.plan().lanes == 1);
  CHECK(one.plan().slots == slot_first + 2);
  const PreparedTrace strict = prepared(two_threads, {.strict = true, .prepared_bytes_max = 1 << 22});
  CHECK(strict.plan().order == Order::strict);
}

TEST_CASE("marks: a short trace is divided exactly") {
  const auto marks = marks_of(1000, 100);
  REQUIRE(marks.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) CHECK(marks[i].event == 10 * (i + 1));
  CHECK(marks[3].positions[0] == 80);
}

TEST_CASE("marks: fewer events than marks give a mark each") {
  const auto marks = marks_of(3, 100);
  REQUIRE(marks.size() == 3);
  CHECK(marks[0].event == 1);
  CHECK(marks[2].event == 3);
}

TEST_CASE("marks: no events, no marks") { CHECK(marks_of(0, 100).empty()); }

TEST_CASE("marks: a long trace is divided to within a four-thousandth, and ends at its end") {
  const std::uint64_t events = 1234567;
  const auto marks = marks_of(events, 100);
  REQUIRE(marks.size() == 100);
  for (std::size_t i = 0; i + 1 < 100; ++i) {
    const double wanted = static_cast<double>(events) * static_cast<double>(i + 1) / 100;
    CHECK(static_cast<double>(marks[i].event) <= wanted);
    CHECK(static_cast<double>(marks[i].event) >= wanted - static_cast<double>(events) / 4096);
    CHECK(marks[i].positions[0] == 2 * marks[i].event);
  }
  CHECK(marks.back().event == events);
}

TEST_CASE("time marks: most are of the states that last") {
  // Each millisecond a buffer is freed and the next one allocated, 10 us later.
  const auto marks_of_cycles = [](std::uint64_t cycles, std::size_t count) {
    TimeMarks moments(1000000);
    std::uint64_t event = 0, last_ns = 0;
    for (std::uint64_t cycle = 1; cycle <= cycles; ++cycle) {
      for (const std::uint64_t next_ns : {cycle * 1000000, cycle * 1000000 + 10000}) {
        if (event != 0 && moments.wants(last_ns, next_ns))
          moments.add({.event = event, .live = {}, .time_ns = last_ns, .next_ns = next_ns});
        ++event;
        last_ns = next_ns;
      }
    }
    return moments.choose(count, last_ns);
  };
  for (const std::uint64_t cycles : {100, 3000, 100000}) {
    const auto marks = marks_of_cycles(cycles, 50);
    const auto lasts = [](const Mark& mark) { return mark.next_ns - mark.time_ns > 900000; };
    CHECK(marks.size() == 50);
    CHECK(std::count_if(marks.begin(), marks.end(), lasts) >= 48);
  }
}

TEST_CASE("time marks: a wait that is longer than all parts of the time has a single mark") {
  TimeMarks moments(2000);
  for (std::uint64_t event = 1; event < 1000; ++event) {
    const std::uint64_t last_ns = event * 2000 + (event > 500 ? 1000000000 : 0),
                        next_ns = last_ns + (event == 500 ? 1000002000 : 2000);
    if (moments.wants(last_ns, next_ns))
      moments.add({.event = event, .live = {}, .time_ns = last_ns, .next_ns = next_ns});
  }
  const auto marks = moments.choose(50, 1002000000);
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].event == 500);
  CHECK(marks[0].next_ns == 1001002000);
}

TEST_CASE("prepared trace: a trace with times has marks for its mean too") {
  std::string text;
  for (int tag = 1; tag <= 1000; ++tag)
    text += "malloc(1) = <" + std::to_string(tag) + "> time=" + std::to_string(tag * 3000000) + "\n";
  const PreparedTrace trace = prepared(text);
  const auto is_of_mean = [](const Mark& mark) { return mark.next_ns == mark.time_ns + 3000000; };
  const std::vector<Mark>& marks = trace.plan().marks;
  CHECK(std::count_if(marks.begin(), marks.end(), is_of_mean) == 50);
  CHECK(marks.size() <= 102);
}

TEST_CASE("time marks: those of a program that repeats itself are not all in one phase") {
  // 100 rounds of 100 ms, of which a buffer lives 30 ms.
  TimeMarks moments(100000000);
  std::uint64_t event = 0, last_ns = 0;
  for (std::uint64_t round = 1; round <= 100; ++round) {
    for (const std::uint64_t next_ns : {round * 100000000, round * 100000000 + 30000000}) {
      if (event != 0) moments.add({.event = event, .live = {}, .time_ns = last_ns, .next_ns = next_ns});
      ++event;
      last_ns = next_ns;
    }
  }
  const auto marks = moments.choose(50, last_ns);
  const auto has_buffer = [](const Mark& mark) { return mark.event % 2 == 1; };
  const auto with = std::count_if(marks.begin(), marks.end(), has_buffer);
  CHECK(with >= 10);
  CHECK(with <= 20);
}

TEST_CASE(
    "prepared trace: the mean of a slice begins after its live blocks, which have the times when they were made") {
  std::string text = "#cmt text=1\n#cmt slice=990s:991s\n";
  for (int tag = 1; tag <= 20; ++tag)
    text += "malloc(16) = <" + std::to_string(tag) + "> time=" + std::to_string(tag * 1000000) + "\n";
  text += "mark(\"slice 990s:991s\") time=990000000000\n";
  for (int tag = 21; tag <= 1020; ++tag)
    text += "malloc(1) = <" + std::to_string(tag) + "> time=" + std::to_string(990000000000 + tag * 1000000) + "\n";
  const PreparedTrace trace = prepared(text + "end\n");
  const auto is_of_mean = [](const Mark& mark) { return mark.next_ns != cmt::unknown; };
  const std::vector<Mark>& marks = trace.plan().marks;
  CHECK(std::count_if(marks.begin(), marks.end(), is_of_mean) == 50);
  const auto first = std::find_if(marks.begin(), marks.end(), is_of_mean);
  CHECK(first->event >= 21);
  CHECK(trace.plan().facts.mean_touched_bytes == 20 * 16 + 499500 / 1020);
}

TEST_CASE("marks: with many lanes fewer moments are remembered") {
  MarkCandidates candidates;
  std::size_t kept = 0;
  for (std::uint64_t event = 1; event <= 20000; ++event) {
    if (!candidates.wants(event)) continue;
    candidates.add({.event = event, .live = {}, .positions = std::vector<std::uint64_t>(2000)});
    ++kept;
  }
  CHECK(kept < 2000);
  CHECK(candidates.choose(100, {.event = 20000, .live = {}}).size() == 100);
}

TEST_CASE("marks: a moment takes the place of the nearest one, and never of the end") {
  const auto moment_at = [](std::uint64_t event) {
    Mark mark;
    mark.event = event;
    return mark;
  };
  const auto with = [&moment_at](std::vector<std::uint64_t> events, std::uint64_t moment) {
    std::vector<Mark> marks;
    for (const std::uint64_t event : events) marks.push_back(moment_at(event));
    include_mark(marks, moment_at(moment));
    std::vector<std::uint64_t> result;
    for (const Mark& mark : marks) result.push_back(mark.event);
    return result;
  };
  using Events = std::vector<std::uint64_t>;
  CHECK(with({10, 20, 30}, 12) == Events{12, 20, 30});
  CHECK(with({10, 20, 30}, 19) == Events{10, 19, 30});
  CHECK(with({10, 20, 30}, 29) == Events{10, 29, 30});
  CHECK(with({10, 20, 30}, 5) == Events{5, 20, 30});
  CHECK(with({10, 20, 30}, 20) == Events{10, 20, 30});
  CHECK(with({30}, 5) == Events{5, 30});
  CHECK(with({}, 5).empty());
}

TEST_CASE("prepared trace: the moment before an event has the lane of its call") {
  const PreparedTrace trace = prepared(two_threads);
  const StopPoint free = trace.stop_point(3);
  CHECK(free.event == 3);
  CHECK(free.lane == 1);
  CHECK(free.before.positions.at(1) < free.after.positions.at(1));
  CHECK(event_at(trace, 1, free.before.positions.at(1)) == 3);
  CHECK(trace.stop_point(6).event == 6);
  CHECK_THROWS_WITH(trace.stop_point(7), "--until: the trace has 5 events; one more stops at its end");
}
