// Checks that BlockTable finds and ends blocks of all ages like a plain map does.

#include "libcmt/block_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace {

struct Value {
  cmt::Tag tag = 0;
  std::uint64_t size = 0;
};

}  // namespace

TEST_CASE("block table: agrees with an ordered map while it grows and shrinks") {
  std::mt19937_64 random(42);
  cmt::BlockTable<Value> table;
  std::map<cmt::Tag, std::uint64_t> model;
  cmt::Tag newest = 0;
  int wrong = 0;
  for (int round = 0; round < 300000; ++round) {
    const bool growing = round / 50000 % 2 == 0;
    if (random() % 8 < (growing ? 5u : 3u)) {
      newest += 1 + (random() % 16 == 0 ? random() % 100 : 0);
      wrong += !table.insert({newest, newest * 3});
      model[newest] = newest * 3;
    } else {
      const cmt::Tag victim = newest - (random() % 2 == 0 ? random() % 16 : random() % (newest + 1));
      const auto erased = table.erase(victim);
      wrong += (erased != nullptr) != model.contains(victim) || (erased && erased->size != model[victim]);
      model.erase(victim);
    }
    wrong += table.size() != model.size();
  }
  CHECK(wrong == 0);
  std::size_t seen = 0;
  table.for_each([&](const Value& block) { seen += model.contains(block.tag); });
  CHECK(seen == model.size());
}

TEST_CASE("block table: a tag that is alive is refused") {
  cmt::BlockTable<Value> table;
  CHECK(table.insert({7, 8}));
  CHECK_FALSE(table.insert({7, 16}));
  CHECK(table.erase(7)->size == 8);
  CHECK_FALSE(table.erase(7));
}

TEST_CASE("block table: tag 0 is never alive") {
  cmt::BlockTable<Value> table;
  CHECK_FALSE(table.erase(0));
}

TEST_CASE("block table: of groups that age, what lives is found wherever it is kept") {
  cmt::BlockTable<Value> table;
  constexpr cmt::Tag count = 100000;
  for (cmt::Tag tag = 1; tag <= count; ++tag) table.insert({tag, tag * 3});
  REQUIRE(table.size() == count);
  const auto lives = [](cmt::Tag tag, unsigned share) { return tag % 64 < share; };
  for (const unsigned share : {48u, 30u, 12u, 3u, 0u}) {  // packed, packed again, and scattered
    int wrong = 0;
    for (cmt::Tag tag = 1; tag <= count; ++tag) {
      if (!lives(tag, share)) table.erase(tag);
    }
    std::size_t live = 0;
    for (cmt::Tag tag = 1; tag <= count; ++tag) {
      const Value* const found = table.find(tag);
      wrong += (found != nullptr) != lives(tag, share) || (found != nullptr && found->size != tag * 3);
      live += lives(tag, share);
    }
    CHECK(wrong == 0);
    CHECK(table.size() == live);
  }
}

TEST_CASE("block table: a tag that comes late is found, and refused a second time") {
  cmt::BlockTable<Value> table;
  CHECK(table.insert({1000000, 1}));
  CHECK(table.insert({5, 2}));
  CHECK(table.insert({6, 3}));
  CHECK_FALSE(table.insert({5, 4}));
  CHECK(table.find(5)->size == 2);
  CHECK(table.erase(5)->size == 2);
  CHECK(table.size() == 2);
}
