// Checks that batches come out in order for any number of threads, and how the last one and an exception end the work.

#include "toolkit/trace/stages.h"

#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

using cmt::trace::Stages;

namespace {

/// Squares the numbers from 0 to `count` in four stages; the third works on many at once. Returns what came out.
struct Squares {
  std::uint64_t count;
  std::uint64_t last_in_second = ~std::uint64_t{0};
  std::uint64_t thrown_in_third = ~std::uint64_t{0};
  std::optional<std::size_t> home_of_first{}, home_of_last{};
  std::vector<std::uint64_t> out{};

  void run(unsigned threads) {
    std::vector<std::uint64_t> numbers(Stages::places_for(threads)), order(numbers.size());
    std::uint64_t next = 0, second = 0;
    Stages stages({{true,
                    [&](std::size_t place) {
                      numbers[place] = next++;
                      return next < count;
                    },
                    home_of_first},
                   {true,
                    [&](std::size_t place) {
                      order[place] = second++;
                      return numbers[place] != last_in_second;
                    }},
                   {false,
                    [&](std::size_t place) {
                      if (numbers[place] == thrown_in_third) throw std::runtime_error("third");
                      if (numbers[place] == order[place]) numbers[place] *= numbers[place];
                      return true;
                    }},
                   {true, [&](std::size_t place) { return out.push_back(numbers[place]), true; }, home_of_last}},
                  numbers.size());
    stages.run(threads);
  }
};

std::vector<std::uint64_t> squares(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint64_t& number : numbers) number *= number;
  return numbers;
}

}  // namespace

TEST_CASE("stages: all batches come out in order, with any number of threads") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    Squares all{.count = 3000};
    all.run(threads);
    CHECK(all.out == squares(3000));
    Squares one{.count = 1};
    one.run(threads);
    CHECK(one.out == squares(1));
  }
}

TEST_CASE("stages: their homes make no difference to the output") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    Squares all{.count = 3000, .home_of_first = 1, .home_of_last = 0};
    all.run(threads);
    CHECK(all.out == squares(3000));
  }
}

TEST_CASE("stages: if a later stage ends the work, no later batch comes out") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    Squares some{.count = 3000, .last_in_second = 700};
    some.run(threads);
    CHECK(some.out == squares(701));
  }
}

TEST_CASE("stages: an exception of a stage is thrown after the batches before it are out") {
  for (const unsigned threads : {1U, 2U, 5U}) {
    Squares some{.count = 3000, .thrown_in_third = 900};
    CHECK_THROWS_WITH(some.run(threads), "third");
    CHECK(some.out.size() <= 900);
    CHECK(some.out == squares(some.out.size()));
  }
}
