// Checks that a batch keeps few of the defects that are found while it is read, and counts all.

#include "toolkit/trace/trace_batch.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>

using cmt::Defect;
using cmt::Reader;
using cmt::ReadOptions;
using cmt::trace::BatchReader;
using cmt::trace::TraceBatch;

namespace {

constexpr int bad_lines = 20000;

/// Reads a text and calls `visit` with each batch. Returns the number of defects up to the first event.
std::uint64_t read_batches(const std::string& text, const std::function<void(const TraceBatch&)>& visit) {
  const int fd = memfd_create("text", MFD_CLOEXEC);
  REQUIRE(pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  BatchReader* batches = nullptr;
  ReadOptions options;
  std::uint64_t at_once = 0;
  options.on_defect = [&](const Defect& defect) {
    if (batches != nullptr && batches->is_filling()) return batches->add(defect);
    at_once += defect.count;
  };
  Reader reader(fd, "text", options);
  BatchReader filling(reader);
  batches = &filling;
  TraceBatch batch;
  for (bool more = true; more;) {
    more = filling.fill(batch);
    visit(batch);
  }
  return at_once;
}

std::string some_bad_lines() {
  std::string lines;
  for (int i = 0; i < bad_lines; ++i) lines += "bad " + std::to_string(i) + "\n";
  return lines;
}

}  // namespace

TEST_CASE("batch: of many bad lines, few are kept, and all are counted") {
  std::uint64_t defects = 0;
  const std::uint64_t at_once =
      read_batches("malloc(8) = 10\n" + some_bad_lines() + "free(20)\n", [&](const TraceBatch& batch) {
        CHECK(batch.defects.size() < 40);
        for (const TraceBatch::ReadDefect& each : batch.defects) defects += each.defect.count;
        if (!batch.defects.empty())
          CHECK(batch.defects.back().defect.what == "no block lives at this address: dropped");
      });
  CHECK(defects + at_once == bad_lines + 1);
}

TEST_CASE("batch: owns its lines, and knows whether a terminal would obey some of them") {
  read_batches("malloc(8) = 10\n free(10) # x\n", [&](const TraceBatch& batch) {
    if (batch.events.empty()) return;
    CHECK(batch.line(0) == "malloc(8) = 10");
    CHECK(batch.line(1) == " free(10)");
    CHECK(batch.line(0).data() == batch.text.data());
    CHECK(batch.lines_are_plain);
  });
  read_batches("malloc(8) = 10\nmark(\"\x1b[2J\")\n", [&](const TraceBatch& batch) {
    if (!batch.events.empty()) CHECK_FALSE(batch.lines_are_plain);
  });
}

TEST_CASE("batch: long lines end it early") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "mark(\"" + std::string(4000, 'x') + "\")" + std::string(60000, ' ') + "\n";
  std::size_t events = 0;
  read_batches(text, [&](const TraceBatch& batch) {
    CHECK(batch.text.size() <= 128 * 1024);
    events += batch.events.size();
  });
  CHECK(events == 100);
}
