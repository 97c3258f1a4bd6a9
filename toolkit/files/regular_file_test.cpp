// Checks that only regular files are opened.

#include "toolkit/files/regular_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cmt/error.h"
#include "tests/symbols/watched_fifo.h"

using cmt::files::open_regular_file;
namespace fs = std::filesystem;

namespace {

/// A folder of files of each kind.
struct OddFiles {
  OddFiles() {
    std::string name = (fs::temp_directory_path() / "cmt.odd.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
    std::ofstream(folder / "file") << "text";
    fs::create_symlink("/file", folder / "link");
    fs::create_symlink("file", folder / "near");
  }
  ~OddFiles() { fs::remove_all(folder); }

  std::string path(const char* name) const { return (folder / name).string(); }
  fs::path folder;
};

std::string text_of_open_file(const cmt::process::Fd& file) {
  std::string buffer;
  return std::string(cmt::process::read_again(file.get(), buffer));
}

}  // namespace

TEST_CASE("regular file: a file is opened, by a link too") {
  const OddFiles files;
  CHECK(text_of_open_file(open_regular_file(files.path("file"))) == "text");
  CHECK(text_of_open_file(open_regular_file(files.path("near"))) == "text");
  CHECK_THROWS_AS(open_regular_file(files.path("near"), {.follows_links = false}), std::system_error);
  CHECK_THROWS_AS(open_regular_file(files.path("none")), std::system_error);
}

TEST_CASE("regular file: links are followed within the root") {
  const OddFiles files;
  try {
    CHECK(text_of_open_file(open_regular_file("/link", {.root = files.folder.string()})) == "text");
  } catch (const std::system_error& error) {
    WARN_MESSAGE(error.code().value() == ENOSYS, "openat2 is refused here");
  }
}

TEST_CASE("regular file: a FIFO is refused, and its writer is not released") {
  const OddFiles files;
  const std::string path = files.path("fifo");
  const cmt::fixture::WatchedFifo fifo(path);
  CHECK_THROWS_WITH_AS(open_regular_file(path), (path + ": is no regular file").c_str(), cmt::FormatError);
  CHECK(!fifo.was_opened());
  close(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  CHECK(fifo.was_opened());
}

TEST_CASE("regular file: devices and folders are refused") {
  CHECK_THROWS_WITH_AS(open_regular_file("/dev/zero"), "/dev/zero: is no regular file", cmt::FormatError);
  CHECK_THROWS_WITH_AS(open_regular_file("/"), "/: is no regular file", cmt::FormatError);
}
