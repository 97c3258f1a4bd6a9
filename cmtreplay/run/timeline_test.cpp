// Tests samples with a made-up /proc: their memory, event and clock.
#include "cmtreplay/run/timeline.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace cmt::replay;

namespace fs = std::filesystem;

namespace {

/// A /proc with one process of so many resident pages, of which 10 are shared.
class StatmFile {
 public:
  StatmFile() { fs::create_directories(root_ / "7"); }
  ~StatmFile() { fs::remove_all(root_); }
  void resident(int pages) const { std::ofstream(root_ / "7" / "statm") << "500 " << pages << " 10 0 0 0 0\n"; }
  std::string root() const { return root_; }

 private:
  fs::path root_ = fs::temp_directory_path() / "cmt_timeline_test";
};

/// Goes on until so many samples are there.
void sample(Timeline& timeline, std::uint64_t event, std::size_t count) {
  do {
    timeline.resume(event);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    timeline.pause();
  } while (timeline.samples().size() < count);
}

}  // namespace

TEST_CASE(
    "timeline: samples are what the allocator had at the start and what came since, with the event before and a rising "
    "clock") {
  const StatmFile fixture;
  fixture.resident(30);
  Timeline timeline(7, 5 * 4096, fixture.root());
  fixture.resident(130);
  sample(timeline, 5, 1);
  const std::size_t first = timeline.samples().size();
  sample(timeline, 9, first + 2);
  CHECK(timeline.samples().front().resident_bytes == 105 * 4096);
  CHECK(timeline.samples().front().event == 5);
  CHECK(timeline.samples().back().event == 9);
  CHECK(timeline.samples()[first].clock_ns > timeline.samples()[first - 1].clock_ns);
  CHECK(timeline.samples().back().clock_ns <= timeline.clock_ns());
}

TEST_CASE("timeline: where the allocator has less than nothing it is 0") {
  const StatmFile fixture;
  fixture.resident(30);
  Timeline timeline(7, 5 * 4096, fixture.root());
  fixture.resident(20);
  sample(timeline, 1, 1);
  CHECK(timeline.samples().front().resident_bytes == 0);
}

TEST_CASE("timeline: nothing is sampled while the worker stands") {
  const StatmFile fixture;
  fixture.resident(30);
  Timeline timeline(7, 0, fixture.root());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(timeline.samples().empty());
  CHECK(timeline.clock_ns() == 0);
}
