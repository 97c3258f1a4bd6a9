// exchange_check TRACE STATED: whether a trace of tests/preload/programs/exchange.c is true. Exits with 1 if it is not,
// and says on standard error where. Prints
//
//   events      of the trace
//   ended       blocks that the threads have ended, by their own statement
//
//   wrong       of these in the trace: ended by another thread, in another order, or missing, or paired with another
//               allocation
//
//   overlaps    allocations whose bytes were those of a block that lived, in the trace's order
//   unseen      blocks ended without an allocation in the trace
//
// The trace has to be whole, and to have eight threads that start and exit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cmt/reader.h"
#include "cmt/text.h"

namespace {

constexpr std::size_t exchange_threads = 8;
constexpr std::uint64_t begin_size = 1500, end_size = 1600, nameless = ~std::uint64_t{0};

/// The names of the blocks that each thread has ended: its number << 32 | the number of the allocation in that thread.
using Names = std::vector<std::uint64_t>;

std::array<Names, exchange_threads> read_stated(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read = [&](std::uint64_t* to, std::uint64_t count) {
    file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(count * sizeof *to));
    if (!file) throw cmt::FormatError(path, "is cut off");
  };
  std::array<Names, exchange_threads> all;
  for (Names& names : all) {
    std::uint64_t count = 0;
    read(&count, 1);
    names.resize(count);
    read(names.data(), count);
  }
  return all;
}

/// The live blocks by address.
class LiveBytes {
 public:
  struct Block {
    std::uint64_t bytes = 0;
    cmt::Tag tag = 0;
    std::uint32_t thread = 0;
  };
  using Place = std::pair<const std::uint64_t, Block>;

  /// If two blocks have one address, only the later one is kept.
  void erase(std::uint64_t address, cmt::Tag tag) {
    const auto found = blocks_.find(address);
    if (found != blocks_.end() && found->second.tag == tag) blocks_.erase(found);
  }

  void insert(std::uint64_t address, const Block& block) { blocks_[address] = block; }

  /// A block that lives in these bytes, or nullptr.
  const Place* find_within(std::uint64_t address, std::uint64_t bytes) const {
    const auto behind = blocks_.lower_bound(address);
    if (behind != blocks_.end() && behind->first < address + bytes) return &*behind;
    if (behind == blocks_.begin()) return nullptr;
    const Place& before = *std::prev(behind);
    return before.first + before.second.bytes > address ? &before : nullptr;
  }

 private:
  std::map<std::uint64_t, Block> blocks_;
};

class Checker {
 public:
  explicit Checker(std::array<Names, exchange_threads> stated) : stated_(std::move(stated)) {}

  void add(const cmt::Event& event) {
    ++events_;
    starts_ += event.kind == cmt::Kind::thread_start ? 1 : 0;
    exits_ += event.kind == cmt::Kind::thread_exit ? 1 : 0;
    if (event.ends_block()) note_end(event);
    if (event.makes_block()) note_allocation(event);
  }

  /// Prints the result. Whether all is true.
  bool finish() {
    for (std::size_t number = 0; number < exchange_threads; ++number) {
      const std::uint64_t missing = stated_[number].size() - seen_[number];
      if (missing == 0) continue;
      std::fprintf(stderr, "thread %zu of the program: %llu blocks that it ended are missing\n", number,
                   static_cast<unsigned long long>(missing));
      wrong_ += missing;
    }
    std::uint64_t ended = 0;
    for (const Names& names : stated_) ended += names.size();
    std::printf("events=%llu ended=%llu wrong=%llu overlaps=%llu unseen=%llu\n",
                static_cast<unsigned long long>(events_), static_cast<unsigned long long>(ended),
                static_cast<unsigned long long>(wrong_), static_cast<unsigned long long>(overlaps_),
                static_cast<unsigned long long>(unseen_));
    const bool has_threads = starts_ == exchange_threads && exits_ == exchange_threads;
    if (!has_threads) std::fputs("not eight threads started and exited\n", stderr);
    return wrong_ == 0 && overlaps_ == 0 && unseen_ == 0 && has_threads;
  }

 private:
  /// A thread of the trace. Its blocks count between its first mark and its last.
  struct Thread {
    std::size_t number = exchange_threads;  ///< in the program; exchange_threads: of no thread that exchanges
    bool counts = false;
    cmt::Tag mark = 0;
    std::uint64_t made = 0;
  };

  /// A block lives, whose name is known from its thread's count; a mark and the blocks outside of them are nameless.
  std::uint64_t name_of_next(const cmt::Event& event) {
    Thread& thread = threads_[event.thread];
    const std::uint64_t bytes = event.bytes();
    const bool is_malloc = event.kind == cmt::Kind::malloc;
    if (is_malloc && bytes >= begin_size && bytes < begin_size + exchange_threads) {
      thread.number = bytes - begin_size;
      thread.mark = event.tag;
      return nameless;
    }
    if (is_malloc && thread.counts && bytes == end_size + thread.number) thread.counts = false;
    return thread.counts ? std::uint64_t{thread.number} << 32 | thread.made++ : nameless;
  }

  void note_allocation(const cmt::Event& event) {
    const std::uint64_t bytes = std::max<std::uint64_t>(event.bytes(), 1);
    if (const LiveBytes::Place* other = live_.find_within(event.address, bytes)) {
      if (++overlaps_ <= complaints_max) {
        std::fprintf(stderr, "event %llu: %s: overlaps with block %llu of thread %u, %llu bytes at %llx\n",
                     static_cast<unsigned long long>(events_), cmt::to_line(event).c_str(),
                     static_cast<unsigned long long>(other->second.tag), other->second.thread,
                     static_cast<unsigned long long>(other->second.bytes),
                     static_cast<unsigned long long>(other->first));
      }
    }
    live_.insert(event.address, {bytes, event.tag, event.thread});
    names_.emplace(event.tag, name_of_next(event));
  }

  void note_end(const cmt::Event& event) {
    live_.erase(event.old_address, event.old_tag);
    Thread& thread = threads_[event.thread];
    const auto found = names_.find(event.old_tag);
    const std::uint64_t name = found == names_.end() ? nameless : found->second;
    if (found == names_.end())
      ++unseen_;
    else
      names_.erase(found);
    if (thread.mark == event.old_tag) {
      thread.mark = 0;
      thread.counts = true;
    } else if (thread.counts) {
      compare(event, thread.number, name);
    }
  }

  void compare(const cmt::Event& event, std::size_t number, std::uint64_t name) {
    const Names& stated = stated_[number];
    const std::uint64_t wanted = seen_[number] < stated.size() ? stated[seen_[number]++] : nameless;
    if (name == wanted && name != nameless) return;
    if (++wrong_ > complaints_max) return;
    std::fprintf(stderr,
                 "event %llu: %s: ends allocation %llx, and by the program %llx (its thread << 32 | number in it)\n",
                 static_cast<unsigned long long>(events_), cmt::to_line(event).c_str(),
                 static_cast<unsigned long long>(name), static_cast<unsigned long long>(wanted));
  }

  static constexpr std::uint64_t complaints_max = 5;
  std::array<Names, exchange_threads> stated_;
  std::array<std::uint64_t, exchange_threads> seen_{};  ///< ends of each thread of the program in the trace
  std::unordered_map<std::uint32_t, Thread> threads_;   ///< by their number in the trace
  std::unordered_map<cmt::Tag, std::uint64_t> names_;   ///< of the live blocks
  LiveBytes live_;
  std::uint64_t events_ = 0, starts_ = 0, exits_ = 0, wrong_ = 0, overlaps_ = 0, unseen_ = 0;
};

bool check(const char* trace, const char* stated) {
  Checker checker(read_stated(stated));
  cmt::Reader reader(trace);
  reader.accept_samples();  // a sample of all blocks, in sampling_test.sh
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) checker.add(event);
  }
  const bool is_true = checker.finish();
  if (reader.truncated()) std::fputs("the trace is not whole\n", stderr);
  return is_true && !reader.truncated();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: exchange_check TRACE STATED\n", stderr), 2;
  try {
    return check(argv[1], argv[2]) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exchange_check: %s\n", error.what());
    return 2;
  }
}
