// Checks that links are followed to the file that is written, and what may be replaced by an output.

#include "toolkit/command/output_path.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

using namespace cmt::command;

namespace {

namespace fs = std::filesystem;

struct OutputFolder {
  OutputFolder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~OutputFolder() { fs::remove_all(path); }
  std::string path = "/tmp/outputs.XXXXXX";
};

int error_of(void (*action)(const std::string&), const std::string& path) {
  try {
    action(path);
  } catch (const std::system_error& error) {
    CHECK(std::string(error.what()).starts_with(path + ": "));
    return error.code().value();
  }
  return 0;
}

}  // namespace

TEST_CASE_FIXTURE(OutputFolder, "output path: links are followed to the file that is written, there or not") {
  fs::create_symlink("b", path + "/a");
  fs::create_symlink(path + "/c", path + "/b");
  CHECK(follow_links(path + "/a") == path + "/c");
  CHECK(follow_links(path + "/c") == path + "/c");
  CHECK(follow_links("plain") == "plain");
  fs::create_symlink("round", path + "/round");
  CHECK(error_of([](const std::string& name) { follow_links(name); }, path + "/round") == ELOOP);
}

TEST_CASE_FIXTURE(OutputFolder, "output path: a regular file makes room, and nothing else does") {
  std::ofstream(path + "/old") << "old";
  CHECK(error_of(make_room, path + "/old") == 0);
  CHECK(error_of(make_room, path + "/new") == 0);
  CHECK(fs::is_empty(path));
  CHECK(error_of(make_room, path) == EISDIR);
  CHECK_THROWS_WITH_AS(make_room("/dev/null"), "/dev/null: is not a regular file", std::runtime_error);
  CHECK(error_of(check_regular, path) == 0);
  CHECK(error_of(check_regular, path + "/new") == 0);
  CHECK_THROWS_WITH_AS(check_regular("/dev/null"), "/dev/null: a trace is a regular file, and this is none",
                       std::runtime_error);
  CHECK(error_of(make_room, path + "/none/new") == ENOENT);
  CHECK(error_of(check_folder, path + "/none/%n.cmt") == ENOENT);
  CHECK(error_of(check_folder, path + "/%n.cmt") == 0);
  CHECK(error_of(check_folder, "%n.cmt") == 0);
  CHECK(error_of(check_folder, path + "/%n/%p.cmt") == 0);
}
