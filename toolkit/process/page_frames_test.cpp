#include "toolkit/process/page_flags.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using namespace cmt::process;

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

}  // namespace

TEST_CASE("page flags: a part of a huge page is what its head is") {
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
