// Touched pages are found on a made-up machine, with huge and untracked pages, by either method.
#include "cmtwatch/working_set/touch_meter.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "toolkit/process/system.h"

using namespace cmt::watch;

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t resident = std::uint64_t{1} << 63;
constexpr std::uint64_t lru = 1 << 5, head = 1 << 15, tail = 1 << 16, huge = 1 << 22;

/// A made-up machine with one process, 7: pages 1 and 2 are its heap, 16 on its memory without a name.
class Machine {
 public:
  Machine() {
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    fs::create_directories(path_ + "/7");
    fs::create_directories(path_ + "/kernel/mm/page_idle");
    write("7/maps", "1000-3000 rw-p 00000000 00:00 0 [heap]\n10000-20000 rw-p 00000000 00:00 0 \n");
    Words flags(2048);
    for (const std::size_t frame : {3, 70, 71, 130}) flags[frame] = lru;
    flags[1024] = lru | head | huge;
    for (std::size_t frame = 1025; frame < 1536; ++frame) flags[frame] = tail | huge;
    write("kpageflags", flags);
    idle({0, 0, 0});
    pages({{1, 70}, {2, 3}, {16, 71}, {17, 1030}, {18, 1031}, {20, 5}});
  }
  ~Machine() { fs::remove_all(path_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  TouchTarget target() const { return {.pid = 7, .root = path_, .sys = path_}; }

  struct Place {
    std::uint64_t page;
    std::uint64_t frame;
  };
  void pages(const std::vector<Place>& places) const {
    Words words(32);
    for (const Place& place : places) words[place.page] = resident | place.frame;
    write("7/pagemap", words);
  }
  /// Sets the bits of these frames, and no other.
  void idle(const Words& frames) const {
    Words words(32);
    for (const std::uint64_t frame : frames) words[frame / 64] |= std::uint64_t{1} << frame % 64;
    write("kernel/mm/page_idle/bitmap", words);
  }
  Words idle() const {
    Words frames;
    std::ifstream file(path_ + "/kernel/mm/page_idle/bitmap", std::ios::binary);
    std::uint64_t word = 0;
    for (std::uint64_t first = 0; file.read(reinterpret_cast<char*>(&word), sizeof word); first += 64) {
      for (std::uint64_t bit = 0; bit < 64; ++bit) {
        if (word >> bit & 1) frames.push_back(first + bit);
      }
    }
    return frames;
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ + "/" + name) << text; }
  void write(const std::string& name, const Words& words) const {
    write(name, std::string(reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]));
  }
  void remove(const std::string& name) const { fs::remove_all(path_ + "/" + name); }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/touch_meter.XXXXXX";
};

std::uint64_t pages_of(std::uint64_t bytes) { return bytes / cmt::process::page_bytes(); }

cmt::process::Mapping mapping(const char* permissions, const char* name, unsigned pages = 2) {
  return {
      .begin = 0x10000, .end = 0x10000 + pages * cmt::process::page_bytes(), .permissions = permissions, .name = name};
}

MappingFilter filter_of(const char* kinds) { return {.kinds = parse_mapping_kinds(kinds).value(), .permissions = {}}; }

}  // namespace

TEST_CASE("touch meter: frames are marked, a huge page at its first one, and none that the kernel does not track") {
  const Machine machine;
  make_touch_meter(TouchMethod::idle, machine.target())->mark();
  CHECK(machine.idle() == Words{3, 70, 71, 1024});
}

TEST_CASE("touch meter: pages whose bit is gone were touched, a huge page's all or none") {
  const Machine machine;
  const auto meter = make_touch_meter(TouchMethod::idle, machine.target());
  meter->mark();
  machine.idle({3, 71, 1024});
  Touched touched = meter->read();
  REQUIRE(touched.mappings.size() == 2);
  CHECK(pages_of(touched.mappings[0].touched_bytes) == 1);
  CHECK(pages_of(touched.mappings[0].mapping.resident_bytes) == 2);
  CHECK(touched.mappings[1].touched_bytes == 0);
  REQUIRE(touched.pages.size() == 1);
  CHECK(touched.pages[0].first == 1);
  CHECK(touched.pages[0].count == 1);

  meter->mark();
  CHECK(machine.idle() == Words{3, 70, 71, 1024});
  machine.idle({});
  touched = meter->read();
  CHECK(pages_of(touched.touched_bytes()) == 5);
  CHECK(pages_of(touched.resident_bytes()) == 6);
  CHECK(pages_of(touched.huge_page_bytes()) == 2);
  CHECK(pages_of(touched.untracked_bytes()) == 1);
  REQUIRE(touched.pages.size() == 2);
  CHECK(touched.pages[1].first == 16);
  CHECK(touched.pages[1].count == 3);
}

TEST_CASE("touch meter: a page that came since the mark was touched") {
  const Machine machine;
  const auto meter = make_touch_meter(TouchMethod::idle, machine.target());
  meter->mark();
  machine.pages({{1, 70}, {2, 3}, {31, 130}});
  const Touched touched = meter->read();
  CHECK(pages_of(touched.touched_bytes()) == 1);
  CHECK(touched.pages.at(0).first == 31);
}

TEST_CASE("touch meter: a range that is reserved by the terabyte is counted and left alone") {
  const Machine machine;
  machine.write("7/maps",
                std::string("1000-3000 rw-p 00000000 00:00 0 [heap]\n10000-10000000000 ---p 00000000 00:00 0 \n"));
  const auto meter = make_touch_meter(TouchMethod::idle, machine.target());
  meter->mark();
  CHECK(machine.idle() == Words{3, 70});
  CHECK(meter->read().too_long == 1);
}

TEST_CASE("touch meter: only what the filter takes is marked") {
  const Machine machine;
  TouchTarget target = machine.target();
  target.filter.kinds = {MappingFilter::Kind::heap};
  const auto meter = make_touch_meter(TouchMethod::idle, target);
  meter->mark();
  CHECK(machine.idle() == Words{3, 70});
  CHECK(meter->read().mappings.size() == 1);
}

TEST_CASE("touch meter: what stands in the way of the bitmap is named") {
  const Machine machine;
  CHECK_FALSE(obstacle_to_idle(machine.target()));
  machine.remove("kernel/mm/page_idle/bitmap");
  fs::create_symlink("/proc/self/mem",
                     machine.path() + "/kernel/mm/page_idle/bitmap");  // any file that opens but fails
  CHECK(obstacle_to_idle(machine.target()) == machine.path() + "/kernel/mm/page_idle/bitmap: Input/output error");
  machine.pages({{1, 0}});
  CHECK(obstacle_to_idle(machine.target()) == "the frames in " + machine.path() + "/7/pagemap are hidden from us");
  machine.remove("kpageflags");
  CHECK(obstacle_to_idle(machine.target()) == machine.path() + "/kpageflags may not be read");
  machine.remove("kernel");
  CHECK(obstacle_to_idle(machine.target()) == "the kernel has no bitmap of idle pages (CONFIG_IDLE_PAGE_TRACKING), " +
                                                  machine.path() + "/kernel/mm/page_idle/bitmap");
}

TEST_CASE("touch meter: a page in the last, incomplete word of the bitmap is not tracked") {
  const Machine machine;
  fs::resize_file(machine.path() + "/kernel/mm/page_idle/bitmap", 12);  // frames 64 to 95: the kernel returns no word
  const auto meter = make_touch_meter(TouchMethod::idle, machine.target());
  meter->mark();
  const Touched touched = meter->read();
  CHECK(touched.touched_bytes() == 0);
  CHECK(touched.untracked_bytes() == 5 * cmt::process::page_bytes());
  CHECK(machine.idle() == Words{3});
}

TEST_CASE("touch meter: a process without mappings is gone") {
  const Machine machine;
  const auto meter = make_touch_meter(TouchMethod::idle, machine.target());
  machine.write("7/maps", std::string());
  CHECK_THROWS_AS(meter->mark(), std::system_error);
}

TEST_CASE("touch meter: without the bitmap, Referenced of smaps is what was touched since clear_refs") {
  const Machine machine;
  machine.write("7/clear_refs", std::string("-"));
  machine.write("7/smaps", std::string("1000-3000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\nReferenced: 4 kB\n"
                                       "10000-20000 rw-p 00000000 00:00 0 \nRss: 0 kB\nReferenced: 0 kB\n"
                                       "400000-800000 rw-p 00000000 00:00 0 \nRss: 4096 kB\nReferenced: 2048 kB\n"
                                       "AnonHugePages: 2048 kB\n"));
  const auto meter = make_touch_meter(TouchMethod::referenced, machine.target());
  meter->mark();
  char written = '?';
  std::ifstream(machine.path() + "/7/clear_refs").get(written);
  CHECK(written == '1');
  const Touched touched = meter->read();
  CHECK(touched.mappings.size() == 2);
  CHECK(touched.touched_bytes() == 2052 * 1024);
  CHECK(touched.resident_bytes() == 4104 * 1024);
  CHECK(touched.huge_page_bytes() == 2048 * 1024);
  CHECK(touched.pages.empty());
}

TEST_CASE("mapping filter: kinds add up") {
  CHECK(filter_of("heap").accepts(mapping("rw-p", "[heap]")));
  CHECK_FALSE(filter_of("heap").accepts(mapping("rw-p", "")));
  const MappingFilter both = filter_of("heap,anonymous");
  CHECK(both.accepts(mapping("rw-p", "")));
  CHECK(both.accepts(mapping("rw-p", "[anon:arena]")));
  CHECK(both.accepts(mapping("rw-p", "[heap]")));
  CHECK_FALSE(both.accepts(mapping("r--p", "/usr/lib/libc.so.6")));
  CHECK(filter_of("file").accepts(mapping("rw-s", "/memfd:x (deleted)")));
  CHECK(filter_of("stack").accepts(mapping("rw-p", "[stack]")));
  CHECK_FALSE(filter_of("heap,anonymous,file,stack").accepts(mapping("r-xp", "[vdso]")));
  CHECK(MappingFilter().accepts(mapping("r-xp", "[vdso]")));
}

TEST_CASE("mapping filter: all permissions are needed") {
  const MappingFilter filter{.kinds = {}, .permissions = "rw"};
  CHECK(filter.accepts(mapping("rw-p", "")));
  CHECK_FALSE(filter.accepts(mapping("r--p", "")));
  CHECK_FALSE(MappingFilter{.kinds = {}, .permissions = "x"}.accepts(mapping("rw-p", "")));
}

TEST_CASE("mapping filter: longer is longer, not as long") {
  const MappingFilter filter{.kinds = {}, .permissions = {}, .longer_than = 2};
  CHECK(filter.accepts(mapping("rw-p", "", 3)));
  CHECK_FALSE(filter.accepts(mapping("rw-p", "", 2)));
}

TEST_CASE("mapping filter: a word that is not a kind is refused") {
  for (const char* const text : {"", "heap,", ",heap", "heaps", "heap,,file"}) CHECK_FALSE(parse_mapping_kinds(text));
}
