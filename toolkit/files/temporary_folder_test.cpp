// Checks where a temporary folder is created, and how a fault is reported.
#include "toolkit/files/temporary_folder.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace {

/// Sets TMPDIR, and puts it back.
struct TemporaryDirectory {
  explicit TemporaryDirectory(const char* value) { setenv("TMPDIR", value, 1); }
  ~TemporaryDirectory() { before ? setenv("TMPDIR", before->c_str(), 1) : unsetenv("TMPDIR"); }
  std::optional<std::string> before =
      std::getenv("TMPDIR") ? std::optional<std::string>(std::getenv("TMPDIR")) : std::nullopt;
};

}  // namespace

TEST_CASE("a temporary folder is in TMPDIR, or in /tmp if that cannot have it") {
  const std::string own = cmt::files::make_temporary_folder("cmt.");
  {
    const TemporaryDirectory set(own.c_str());
    CHECK(cmt::files::make_temporary_folder("in.").starts_with(own + "/in."));
  }
  for (const std::string& odd : {own + "/missing", std::string("/proc")}) {
    const TemporaryDirectory set(odd.c_str());
    const std::string folder = cmt::files::make_temporary_folder("cmt.");
    CHECK(folder.starts_with("/tmp/cmt."));
    std::filesystem::remove(folder);
  }
  CHECK_THROWS_WITH(cmt::files::make_temporary_folder("missing/"),
                    doctest::Contains("/tmp: No such file or directory"));
  std::filesystem::remove_all(own);
}
