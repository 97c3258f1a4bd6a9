// Checks which stated paths are traces of a template, and which files are opened.

#include "toolkit/launch/trace_paths.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

using namespace cmt::launch;

namespace {

struct TraceFolder {
  TraceFolder() { REQUIRE(mkdtemp(folder.data()) != nullptr); }
  ~TraceFolder() { std::filesystem::remove_all(folder); }
  std::string make(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  std::string folder = "/tmp/paths.XXXXXX";
};

}  // namespace

TEST_CASE("trace paths: a name without %n and %p has numbers before its ending") {
  const TracePaths paths("/out/app.cmt,/out/app.trace");
  for (const char* const path : {"/out/app.cmt", "/out/app.7.cmt", "/out/app.7.2.cmt", "/out/app.2.cmt"})
    CHECK(paths.find(path, 7) == path);
  for (const char* const path :
       {"/out/app.7.2.3.cmt", "/out/app.x.cmt", "/out/app.trace", "/out/../out/app.cmt", "app.cmt", "", "/out/",
        "/out/app.cmt/x", "/out/app.99999999999.cmt", "/out/app.cmt\n", "//out/app.cmt"})
    CHECK_FALSE(paths.find(path, 7));
  CHECK(TracePaths("/out/app").find("/out/app.7", 7));
  CHECK(TracePaths("/out/a%%b").find("/out/a%b", 7));
  CHECK(TracePaths("/out/app.pb.gz").find("/out/app.7.pb.gz", 7));
}

TEST_CASE("trace paths: %p is the process that the line is of, %n a name without a slash") {
  const TracePaths paths("/out/%n/%n.%p.cmt");
  CHECK(paths.find("/out/perl/perl.7.cmt", 7));
  CHECK(paths.find("/out/a.b/x.7.2.cmt", 7));
  CHECK_FALSE(paths.find("/out/perl/perl.8.cmt", 7));
  CHECK_FALSE(paths.find("/out/../perl.7.cmt", 7));
  CHECK_FALSE(paths.find("/out/a/b/perl.7.cmt", 7));
}

TEST_CASE("trace paths: a flight recorder's files have the trace's name and a number") {
  const TracePaths paths("/out/app.cmt");
  CHECK(paths.find_kept("/out/app.kept.1.cmt", 7));
  CHECK(paths.find_kept("/out/app.7.kept.12.cmt", 7));
  CHECK_FALSE(paths.find_kept("/out/app.1.cmt", 7));
  CHECK_FALSE(paths.find_kept("/etc/app.kept.1.cmt", 7));
}

TEST_CASE("trace paths: relative templates become absolute, and each is") {
  const std::string here = std::filesystem::current_path();
  CHECK(absolute_templates("a.cmt,,/b.%p.trace,c/%n") == here + "/a.cmt,/b.%p.trace," + here + "/c/%n");
  CHECK(
      (absolute_template("a,b") == here + "/a,b" && absolute_template("/c") == "/c" && absolute_template("").empty()));
}

TEST_CASE_FIXTURE(TraceFolder, "trace paths: only a regular file with one name that begins as a trace is opened") {
  const std::string text = make("text", "#cmt text=1\n"), empty = make("empty", ""), other = make("other", "root:x:0");
  close(open_own_trace(text));
  close(open_own_trace(empty));
  CHECK_THROWS_WITH(open_own_trace(other), (other + ": not read, because it does not begin as a trace").c_str());
  std::filesystem::create_symlink(text, folder + "/link");
  std::filesystem::create_hard_link(empty, folder + "/hard");
  REQUIRE(mkfifo((folder + "/fifo").c_str(), 0600) == 0);
  for (const char* const name : {"/link", "/hard", "/fifo", ""}) {
    CHECK_THROWS_AS(close(open_own_trace(folder + name)), std::runtime_error);
    CHECK(owner_of_trace(folder + name) == TraceOwner::no_trace);
    CHECK_FALSE(is_written(folder + name));
  }
  CHECK_THROWS_AS(open_own_trace(folder + "/none"), std::runtime_error);
  CHECK(owner_of_trace(text) == TraceOwner::us);
  if (geteuid() != 0) return;
  REQUIRE(chown(text.c_str(), 65534, 65534) == 0);
  CHECK(owner_of_trace(text) == TraceOwner::other);
  CHECK_THROWS_WITH(open_own_trace(text), (text + ": not read, because it is another user's file").c_str());
}
