// Checks frames, flags and idle bits on fixtures of the kernel's files.

#include "toolkit/process/page_frames.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <system_error>

using namespace cmt::process;

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t lru_page = 1 << 5, head_page = 1 << 15, tail_page = 1 << 16, huge_page = 1 << 22;

/// A made-up /proc with nothing but flags.
class FlagsFile {
 public:
  explicit FlagsFile(const std::vector<std::uint64_t>& flags) {
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    std::ofstream(path_ + "/kpageflags", std::ios::binary)
        .write(reinterpret_cast<const char*>(flags.data()), static_cast<std::streamsize>(flags.size() * 8));
  }
  ~FlagsFile() { std::filesystem::remove_all(path_); }
  FlagsFile(const FlagsFile&) = delete;
  FlagsFile& operator=(const FlagsFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/page_flags.XXXXXX";
};

using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t resident = std::uint64_t{1} << 63;

/// Files as the kernel has them, in a folder of their own.
class Fixture {
 public:
  Fixture() { fs::create_directories(root_ / "7"); }
  ~Fixture() { fs::remove_all(root_); }
  std::string root() const { return root_; }
  std::string bitmap() const { return root_ / "bitmap"; }

  void write(const std::string& name, const Words& words) const {
    std::ofstream(root_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()),
               static_cast<std::streamsize>(words.size() * sizeof words[0]));
  }

 private:
  fs::path root_ = fs::temp_directory_path() / "cmt_page_idle_test";
};

}  // namespace

TEST_CASE("page flags: a part of a huge page has the kind of its head") {
  std::vector<std::uint64_t> flags(1200);
  flags[3] = lru_page;
  flags[510] = lru_page | head_page | huge_page;
  for (std::size_t frame = 511; frame < 1100; ++frame) flags[frame] = tail_page | huge_page;
  const FlagsFile root(flags);
  PageFlags of(root.path());
  REQUIRE(of.available());
  const std::vector<std::uint64_t> frames{2, 3, 510, 511, 512, 1099, 1100, 5000};
  const std::vector<FrameKind> kinds = of.kinds(frames);
  const std::vector<std::uint64_t> heads{2, 3, 510, 510, 510, 510, 1100, 5000};
  const std::vector<bool> tracked{false, true, true, true, true, true, false, false};
  const std::vector<bool> is_huge{false, false, true, true, true, true, false, false};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CAPTURE(frames[i]);
    CHECK(kinds[i].head == heads[i]);
    CHECK(kinds[i].tracked == tracked[i]);
    CHECK(kinds[i].huge == is_huge[i]);
  }
}

TEST_CASE("page flags: a kernel without them is said to have none") { CHECK_FALSE(PageFlags("/nowhere").available()); }

TEST_CASE("page idle: frames are those of resident pages in the range, rising") {
  const Fixture fixture;
  fixture.write("7/pagemap", {resident | 99, resident | 70, 55, resident | 3, resident, resident | 98});
  CHECK(frames(7, 4096, 5 * 4096, fixture.root()) == Words{3, 70});
  CHECK(frames(7, 0, 1, fixture.root()) == Words{99});
  CHECK(frames(7, 5 * 4096, 9 * 4096, fixture.root()) == Words{98});
}

TEST_CASE("page idle: a process that is gone is an error") {
  const Fixture fixture;
  CHECK_THROWS_AS(frames(8, 0, 4096, fixture.root()), std::system_error);
}

TEST_CASE("page idle: frames that are marked are idle until their bit goes") {
  const Fixture fixture;
  fixture.write("bitmap", {0, 0, 0});
  const PageIdle idle(fixture.bitmap());
  REQUIRE(idle.available());
  const Words some{3, 70, 71};
  const std::vector<FrameKind> kinds{{3, true}, {70, true}, {71, true}};
  CHECK(idle.touched(kinds) == 3);
  idle.set(some);
  CHECK(idle.touched(kinds) == 0);
  fixture.write("bitmap", {std::uint64_t{1} << 3, std::uint64_t{1} << 7, 0});
  CHECK(idle.touched(kinds) == 1);
}

TEST_CASE("page idle: a huge page's frames are touched together, untracked ones always") {
  const Fixture fixture;
  fixture.write("bitmap", {0, 0, 0});
  const PageIdle idle(fixture.bitmap());
  const std::vector<FrameKind> kinds{{3, true}, {5}, {64, true, true}, {64, true, true}, {64, true, true}, {70, true}};
  idle.set(heads_of(kinds));
  CHECK(idle.touched(kinds) == 1);
  fixture.write("bitmap", {std::uint64_t{1} << 3, std::uint64_t{1} << 6, 0});
  CHECK(idle.touched(kinds) == 4);
}

TEST_CASE("page idle: a frame beyond the bitmap is an error") {
  const Fixture fixture;
  fixture.write("bitmap", {0});
  CHECK_THROWS_AS(PageIdle(fixture.bitmap()).touched(std::vector<FrameKind>{{64, true}}), std::system_error);
}

TEST_CASE("page idle: frames are not tracked in the last word of a memory that ends within it") {
  const Fixture fixture;
  const FlagsFile root(std::vector<std::uint64_t>(256, lru_page));
  PageFlags flags(root.path());
  fixture.write("bitmap", {0, 0, 0});
  fs::resize_file(fixture.bitmap(), 20);
  PageIdle idle(fixture.bitmap());
  const Words some{3, 70, 127, 128, 140, 200};
  const std::vector<FrameKind> kinds = idle.kinds(flags, some);
  std::vector<bool> tracked;
  for (const FrameKind& kind : kinds) tracked.push_back(kind.tracked);
  CHECK(tracked == std::vector<bool>{true, true, true, false, false, false});
  CHECK(heads_of(kinds) == Words{3, 70, 127});
  idle.set(heads_of(kinds));
  CHECK(idle.touched(kinds) == 3);
}

TEST_CASE("page idle: frames of more words than one call carries, with and without gaps") {
  const Fixture fixture;
  fixture.write("bitmap", Words(2000));
  const PageIdle idle(fixture.bitmap());
  Words some, others;
  for (std::uint64_t frame = 64; frame < 2000 * 64; frame += frame / 64 % 700 == 0 ? 640 : 7) some.push_back(frame);
  for (const std::uint64_t frame : some) others.push_back(frame + 1);
  idle.set(some);
  CHECK(idle.idle(some) == std::vector<bool>(some.size(), true));
  others.pop_back();
  CHECK(idle.idle(others) == std::vector<bool>(others.size(), false));
}

TEST_CASE("page idle: a kernel without the bitmap is said to have none") {
  CHECK_FALSE(PageIdle("/nowhere/bitmap").available());
}
