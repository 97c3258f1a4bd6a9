// Checks that an output leaves the other files of its folder alone, and keeps the mode of the file that it replaces.

#include "toolkit/files/output_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using cmt::files::OutputFile;
namespace fs = std::filesystem;

namespace {

struct FilesOfOutput {
  FilesOfOutput() {
    std::string name = (fs::temp_directory_path() / "cmt.out.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~FilesOfOutput() { fs::remove_all(path); }

  std::string file(const char* name) const { return (path / name).string(); }
  fs::path path;
};

void write_output_file(const std::string& path, const std::string& text) {
  OutputFile output(path);
  REQUIRE(write(output.fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  output.commit();
}

std::string content_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

}  // namespace

TEST_CASE("output file: the user's NAME.part stays") {
  const FilesOfOutput folder;
  std::ofstream(folder.file("x.cmt.part")) << "the user's";
  write_output_file(folder.file("x.cmt"), "whole");
  CHECK(content_of_file(folder.file("x.cmt")) == "whole");
  CHECK(content_of_file(folder.file("x.cmt.part")) == "the user's");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}

TEST_CASE("output file: the file that is replaced keeps its mode") {
  const FilesOfOutput folder;
  for (const mode_t mode : {0600, 0640, 0444}) {
    std::ofstream(folder.file("x")) << "old";
    REQUIRE(chmod(folder.file("x").c_str(), mode) == 0);
    write_output_file(folder.file("x"), "new");
    CHECK(content_of_file(folder.file("x")) == "new");
    CHECK(mode_of_file(folder.file("x")) == mode);
    fs::remove(folder.file("x"));
  }
}

TEST_CASE("output file: a new file has the usual mode") {
  const FilesOfOutput folder;
  const mode_t mask = umask(027);
  write_output_file(folder.file("x"), "new");
  umask(mask);
  CHECK(mode_of_file(folder.file("x")) == 0640);
}

TEST_CASE("output file: an output that is given up leaves the old file and nothing else") {
  const FilesOfOutput folder;
  std::ofstream(folder.file("x")) << "old";
  { const OutputFile output(folder.file("x")); }
  CHECK(content_of_file(folder.file("x")) == "old");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}
