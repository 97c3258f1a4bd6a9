// Compares the sizes of the public types with those of the current SOVERSION. A program that was built with another
// size of cmt::Event reads wrong memory. If a size has changed since the last release, raise SOVERSION (RELEASING.md).

#include <cmt/event.h>
#include <cmt/header.h>
#include <cmt/reader.h>
#include <cmt/stacks.h>
#include <cmt/writer.h>
#include <doctest/doctest.h>

#if defined(__x86_64__) && defined(__GLIBCXX__)
TEST_CASE("binary interface: the public types have the sizes of libcmt.so.1") {
  CHECK(sizeof(cmt::Event) == 112);
  CHECK(sizeof(cmt::KindTraits) == 8);
  CHECK(sizeof(cmt::Repairs) == 96);
  CHECK(sizeof(cmt::Header) == 40);
  CHECK(sizeof(cmt::RunningTotals) == 64);
  CHECK(sizeof(cmt::RunStretch) == 40);
  CHECK(sizeof(cmt::Totals) == 728);
  CHECK(sizeof(cmt::Defect) == 80);
  CHECK(sizeof(cmt::ReadOptions) == 48);
  CHECK(sizeof(cmt::WriteOptions) == 16);
  CHECK(sizeof(cmt::BlockStart) == 40);
  CHECK(sizeof(cmt::Reader) == 8);
  CHECK(sizeof(cmt::Writer) == 8);
  CHECK(sizeof(cmt::Module) == 104);
  CHECK(sizeof(cmt::Frame) == 24);
  CHECK(sizeof(cmt::StackNode) == 8);
  CHECK(sizeof(cmt::FrameName) == 40);
  CHECK(sizeof(cmt::StackTable) == 360);
  CHECK(sizeof(cmt::FormatError) == 48);
}
#endif
