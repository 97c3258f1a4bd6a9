// Mappings are sorted into the right parts and kinds, and series add up where processes begin and end.
#include "cmtwatch/recording/memory_kinds.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmtwatch/recording/recording.h"

using namespace cmt;
using namespace cmt::watch;

namespace {

RecordedMapping mapping_with(std::uint64_t begin, std::uint64_t end, const char* permissions, const char* name,
                             std::uint64_t proportional, std::uint64_t swapped = 0) {
  RecordedMapping made;
  made.begin = begin, made.end = end, made.permissions = permissions, made.name = name;
  made.resident_bytes = proportional + 1'000'000, made.proportional_bytes = proportional, made.swapped_bytes = swapped;
  return made;
}

std::uint64_t bytes(const BytesByKind& all, MemoryKind kind) { return all[static_cast<std::size_t>(kind)]; }

std::vector<std::uint64_t> moments_of(const KindSeries& series, MemoryKind kind) {
  std::vector<std::uint64_t> moments;
  for (const BytesByKind& moment : series.by_kind.at) moments.push_back(bytes(moment, kind));
  return moments;
}

/// A recording that is filled by hand.
class Made {
 public:
  Made() {
    close(mkstemp(path_.data()));
    unlink(path_.c_str());
    database_.emplace(path_, database::Database::Mode::write);
    prepare_recording(*database_, path_);
  }
  ~Made() {
    database_.reset();
    for (const char* const part : {"", "-wal", "-shm"}) unlink((path_ + part).c_str());
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  database::Database& database() { return *database_; }

  void tick(int id) {
    say("insert into tick values (" + std::to_string(id) + ", " + std::to_string(id * 10) + ", 0, 0, 0)");
  }
  void process(int id, int last_tick) {
    say("insert or ignore into name values (1, 'app')");
    const std::string number = std::to_string(id);
    say("insert into process values (" + number + ", 10" + number + ", 5, 1, 1, 'app', 1, " +
        std::to_string(last_tick) + ")");
  }
  void sample(int tick, int process, const std::string& proportional, const std::string& resident,
              const std::string& readable = "1") {
    say("insert into process_sample (tick_id, process_id, proportional_bytes, resident_bytes, mappings_readable) "
        "values (" +
        std::to_string(tick) + ", " + std::to_string(process) + ", " + proportional + ", " + resident + ", " +
        readable + ")");
  }
  void anonymous(int id, int process, int page = 1, int pages = 1) {
    say("insert into mapping values (" + std::to_string(id) + ", " + std::to_string(process) + ", " +
        std::to_string(page * 4096) + ", " + std::to_string((page + pages) * 4096) + ", 'rw-p', null, null)");
  }
  void change(int mapping, int tick, const std::string& proportional) {
    const bool gone = proportional == "null";
    say("insert into mapping_change (mapping_id, tick_id, resident_bytes, proportional_bytes, swapped_bytes) values (" +
        std::to_string(mapping) + ", " + std::to_string(tick) + ", " + (gone ? "null, " : "5000, ") + proportional +
        (gone ? ", null)" : ", 7)"));
  }

 private:
  void say(const std::string& statement) { database_->execute(statement); }

  std::string path_ = "/tmp/kinds.XXXXXX";
  std::optional<database::Database> database_;
};

RecordedMapping mapping(std::uint64_t begin, std::uint64_t end, const char* permissions, const char* name,
                        std::uint64_t resident) {
  RecordedMapping made;
  made.begin = begin, made.end = end, made.permissions = permissions, made.name = name, made.resident_bytes = resident;
  return made;
}

std::string only_name(const std::vector<RecordedMapping>& mappings) { return parts_of(mappings).back().name; }

RecordedMapping with_zero_data(RecordedMapping mapping, std::uint64_t bytes) {
  mapping.zero_data_bytes = bytes;
  return mapping;
}

}  // namespace

TEST_CASE("kinds: mappings are told apart by name, and data behind a library is the library's") {
  const BytesByKind all = by_kind(
      {mapping_with(0x1000, 0x2000, "r-xp", "/lib/a.so", 1),
       with_zero_data(mapping_with(0x2000, 0x3000, "rw-p", "", 2), 0x1000),
       mapping_with(0x4000, 0x5000, "rw-p", "[heap]", 4, 1000), mapping_with(0x6000, 0x7000, "rw-p", "", 8),
       mapping_with(0x8000, 0x9000, "rw-s", "/memfd:x (deleted)", 16),
       mapping_with(0xa000, 0xb000, "rw-p", "[stack]", 32), mapping_with(0xc000, 0xd000, "r-xp", "[vdso]", 64)});
  CHECK(bytes(all, MemoryKind::files) == 3);
  CHECK(bytes(all, MemoryKind::heap) == 4);
  CHECK(bytes(all, MemoryKind::anonymous) == 8);
  CHECK(bytes(all, MemoryKind::shared) == 16);
  CHECK(bytes(all, MemoryKind::stacks) == 32);
  CHECK(bytes(all, MemoryKind::others) == 64);
  CHECK(bytes(all, MemoryKind::swapped) == 1000);
}

TEST_CASE("kinds: a mapping holds until it changes, and a process until it ends") {
  Made made;
  for (const int tick : {1, 2, 3, 4}) made.tick(tick);
  made.process(1, 3);
  made.process(2, 4);
  made.anonymous(1, 1);
  made.anonymous(2, 2);
  made.change(1, 1, "100");
  made.change(1, 3, "50");
  made.change(2, 2, "1000");
  made.change(2, 4, "null");
  made.sample(1, 1, "100", "5000");
  made.sample(2, 1, "100", "5000");
  made.sample(3, 1, "50", "5000");
  made.sample(2, 2, "1000", "5000");
  made.sample(3, 2, "null", "900", "0");
  made.sample(4, 2, "null", "null");
  const KindSeries series = read_kinds(made.database());
  CHECK(series.time_ns == std::vector<std::int64_t>{10, 20, 30, 40});
  std::vector<std::uint64_t> sums;
  std::vector<std::string_view> metrics;
  for (const MemorySum& sum : series.sums.at) {
    sums.push_back(sum.bytes());
    metrics.push_back(sum.any() ? sum.metric() : "nothing");
  }
  CHECK(sums == std::vector<std::uint64_t>{100, 1100, 950, 0});
  CHECK(metrics == std::vector<std::string_view>{"pss", "pss", "pss or rss", "nothing"});
  CHECK(moments_of(series, MemoryKind::anonymous) == std::vector<std::uint64_t>{100, 1100, 50, 0});
  CHECK(moments_of(series, MemoryKind::not_read) == std::vector<std::uint64_t>{0, 0, 900, 0});
  CHECK(moments_of(series, MemoryKind::swapped) == std::vector<std::uint64_t>{7, 14, 7, 0});
  REQUIRE(series.processes.size() == 2);
  CHECK(series.processes[0].bytes.at == std::vector<std::uint64_t>{0, 1000, 900, 0});
  CHECK(series.processes[0].all.metric() == "pss or rss");
  CHECK(series.processes[1].pid == 101);
  CHECK(series.processes[1].all.metric() == "pss");
}

TEST_CASE("kinds: sums of mappings without the mappings are not told apart, and are proportional") {
  Made made;
  made.tick(1);
  made.process(1, 1);
  made.process(2, 1);
  made.sample(1, 1, "100", "5000", "null");
  made.sample(1, 2, "null", "900", "null");
  const KindSeries series = read_kinds(made.database());
  CHECK(moments_of(series, MemoryKind::totals) == std::vector<std::uint64_t>{100});
  CHECK(moments_of(series, MemoryKind::not_read) == std::vector<std::uint64_t>{900});
  CHECK(series.sums.at[0].bytes() == 1000);
}

TEST_CASE("kinds: the processes that are not named are counted together, as what any of them is") {
  Made made;
  made.tick(1);
  for (int process = 1; process <= 9; ++process) {
    made.process(process, 1);
    made.sample(1, process, process == 1 ? "null" : std::to_string(process * 10), "4", "null");
  }
  const KindSeries series = read_kinds(made.database());
  REQUIRE(series.processes.size() == 7);
  CHECK(series.processes[0].bytes.at == std::vector<std::uint64_t>{90});
  CHECK(series.processes[6].pid == 0);
  CHECK(series.processes[6].bytes.at == std::vector<std::uint64_t>{4 + 20 + 30});
  CHECK(series.processes[6].all.metric() == "pss or rss");
}

TEST_CASE("kinds: the largest mappings have a series each, and the others one together") {
  Made made;
  for (const int tick : {1, 2, 3}) made.tick(tick);
  made.process(1, 2);
  made.process(2, 3);
  for (int id = 1; id <= 9; ++id) {
    made.anonymous(id, id == 9 ? 2 : 1, id);
    made.change(id, 1, std::to_string(id * 100));
  }
  made.change(3, 2, "5000");
  made.change(8, 2, "null");
  made.sample(1, 1, "3600", "5000");
  made.sample(2, 1, "7700", "5000");
  for (const int tick : {1, 2, 3}) made.sample(tick, 2, "900", "1000");
  const KindSeries series = read_kinds(made.database());
  REQUIRE(series.mappings.size() == 8);
  CHECK(series.mappings[0].name == "anonymous 3000");
  CHECK(series.mappings[0].pid == 101);
  CHECK(series.mappings[0].bytes.at == std::vector<std::uint64_t>{300, 5000, 0});
  CHECK(series.mappings[1].pid == 102);
  CHECK(series.mappings[1].bytes.at == std::vector<std::uint64_t>{900, 900, 900});
  CHECK(series.mappings[2].bytes.at == std::vector<std::uint64_t>{800, 0, 0});
  CHECK(series.mappings[7].name == "others");
  CHECK(series.mappings[7].bytes.at == std::vector<std::uint64_t>{300, 300, 0});
}

TEST_CASE("kinds: a mapping that grows is one, although it is recorded as another") {
  Made made;
  for (const int tick : {1, 2}) made.tick(tick);
  made.process(1, 2);
  made.anonymous(1, 1, 5);
  made.anonymous(2, 1, 4, 2);
  made.change(1, 1, "100");
  made.change(1, 2, "null");
  made.change(2, 2, "200");
  made.sample(1, 1, "100", "5000");
  made.sample(2, 1, "200", "5000");
  const KindSeries series = read_kinds(made.database());
  REQUIRE(series.mappings.size() == 2);
  CHECK(series.mappings[0].name == "anonymous 5000");
  CHECK(series.mappings[0].bytes.at == std::vector<std::uint64_t>{100, 200});
}

TEST_CASE("breakdown: stacks, heap, anonymous and sockets are told by name") {
  CHECK(only_name({mapping(1, 2, "rw-p", "[stack]", 1)}) == "stacks");
  CHECK(only_name({mapping(1, 2, "rw-p", "[heap]", 1)}) == "heap");
  CHECK(only_name({mapping(1, 2, "rw-p", "", 1)}) == "anonymous");
  CHECK(only_name({mapping(1, 2, "rw-s", "socket:[77]", 1)}) == "sockets");
}

TEST_CASE("breakdown: a library has its zero-initialised data, and not the anonymous memory that is joined with it") {
  const RecordedMapping data = mapping(0x2000, 0x3000, "rw-p", "/lib/a.so", 1);
  CHECK(only_name({data, with_zero_data(mapping(0x3000, 0x4000, "rw-p", "", 1), 0x1000)}) == "/lib/a.so");
  CHECK(only_name({data, mapping(0x3000, 0x4000, "rw-p", "", 1)}) == "anonymous");
  CHECK(only_name({data, with_zero_data(mapping(0x3800, 0x4000, "rw-p", "", 1), 0x800)}) == "anonymous");
  RecordedMapping both = with_zero_data(mapping(0x3000, 0x103000, "rw-p", "", 0x80000), 0x2000);
  both.proportional_bytes = 0x1800;
  both.swapped_bytes = 0x5000;
  const std::vector<MemoryPart> parts = parts_of({data, both});
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].name == "/lib/a.so");
  CHECK(parts[1].mappings == 0);
  CHECK(parts[1].resident_bytes == 0x2000);
  CHECK(parts[1].proportional_bytes == 0x1800);
  CHECK(parts[1].swapped_bytes == 0);
  CHECK(parts[2].name == "anonymous");
  CHECK(parts[2].mappings == 1);
  CHECK(parts[2].resident_bytes == 0x7e000);
  CHECK(parts[2].swapped_bytes == 0x5000);
}

TEST_CASE("breakdown: an unnamed mapping behind a guard is taken for a thread's stack") {
  CHECK(only_name({mapping(0x1000, 0x2000, "---p", "", 0), mapping(0x2000, 0x802000, "rw-p", "", 1)}) ==
        "thread stacks (guessed)");
  CHECK(only_name({mapping(0x1000, 0x4001000, "---p", "", 0), mapping(0x4001000, 0x4802000, "rw-p", "", 1)}) ==
        "anonymous");
}

TEST_CASE("breakdown: the largest files are named, and the others are added up") {
  const MemoryBreakdown breakdown = break_down({{mapping(1, 2, "r--p", "/a", 10), mapping(3, 4, "r--p", "/b", 30)},
                                                {mapping(1, 2, "r--p", "/a", 25), mapping(5, 6, "rw-p", "[heap]", 1)},
                                                {mapping(1, 2, "r--p", "/c", 2), mapping(1, 2, "r--p", "/d", 3)}},
                                               2);
  REQUIRE(breakdown.parts.size() == 4);
  CHECK(breakdown.parts[0].name == "heap");
  CHECK(breakdown.parts[1].name == "/a");
  CHECK(breakdown.parts[1].resident_bytes == 35);
  CHECK(breakdown.parts[2].name == "/b");
  CHECK(breakdown.parts[3].name == "others");
  CHECK(breakdown.parts[3].resident_bytes == 5);
  CHECK(breakdown.sum.resident_bytes == 71);
  CHECK(breakdown.sum.mappings == 6);
}

TEST_CASE("breakdown: nothing has no parts") { CHECK(break_down({}).parts.empty()); }
