// Keys are recognised in the bytes that several terminals send.
#include "cmtwatch/report/screen.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cmt::watch;

namespace {

std::vector<Key> keys_in(std::string bytes) {
  std::vector<Key> keys;
  while (!bytes.empty()) keys.push_back(take_key(bytes));
  return keys;
}

}  // namespace

TEST_CASE("keys: letters, Enter and the space bar") {
  CHECK(keys_in("q \r\nx\x03") == std::vector{Key::quit, Key::pause, Key::next, Key::next, Key::none, Key::quit});
}

TEST_CASE("keys: arrows, Home and End in the forms of several terminals") {
  CHECK(keys_in("\x1b[C\x1bOC\x1b[B\x1b[D\x1b[A") ==
        std::vector{Key::next, Key::next, Key::next, Key::back, Key::back});
  CHECK(keys_in("\x1b[H\x1b[1~\x1b[F\x1bOF\x1b[4~") ==
        std::vector{Key::first, Key::first, Key::last, Key::last, Key::last});
}

TEST_CASE("keys: other sequences are taken whole, and mean nothing") {
  CHECK(keys_in("\x1b[1;5Aq") == std::vector{Key::none, Key::quit});
  CHECK(keys_in("\x1b[15~") == std::vector{Key::none});
  CHECK(keys_in("\x1b") == std::vector{Key::none});
  CHECK(keys_in("\x1b[") == std::vector{Key::none, Key::none});
  CHECK(keys_in("\x1b[12").size() == 1);
}
