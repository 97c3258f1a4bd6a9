/// Consistent random events, and files in memory, for the tests of traces.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cmt/reader.h"
#include "cmt/text.h"
#include "cmt/writer.h"

namespace cmt::fixture {

enum class Addresses { none, reused, random };

/// Random events of all kinds that a Writer accepts without samples; the same events for the same seed.
class RandomTrace {
 public:
  static constexpr Tag first_tag = 1000;

  /// When `live_max` blocks are live, each further event frees one.
  RandomTrace(unsigned seed, Addresses addresses, std::size_t live_max = -1)
      : random_(seed), addresses_(addresses), live_max_(live_max) {}

  Event next() {
    Event event;
    do event.kind = known_kinds[below(known_kinds.size())];
    while (is_of_sampling(event.kind));
    if (live_.size() >= live_max_) event.kind = Kind::free;
    const KindTraits& kind = traits(event.kind);
    event.thread = one_in(6) ? below(4) * 0x55555555u : thread_;
    thread_ = event.thread;
    if (kind.sizes) event.size = one_in(20) ? random_() >> below(64) : below(300);
    if (kind.counts) event.count = one_in(20) ? random_() >> below(64) : below(10);
    if (kind.aligns || (kind.may_align && !is_of_pool(event.kind) && one_in(2))) event.alignment = 1u << below(13);
    if (kind.names && one_in(2)) {  // a run of pages like the one before
      event.size = one_in(2) ? run_end_ : 0;
      event.count = 1;
      event.alignment = 4096;
    }
    if (kind.labels) event.label = labels[below(labels.size())];
    if (is_of_pool(event.kind)) use_pool(event);
    if (kind.is_given()) give(event);
    if (kind.allocates && !one_in(8)) make(event);
    book(event);
    if (kind.names) run_end_ = event.size + event.count * event.alignment;
    if (one_in(2)) event.time_ns = time_ += below(1000);
    return event;
  }

 private:
  struct Block {
    Tag tag;
    std::uint64_t address;
  };
  static constexpr std::array<std::string_view, 3> pools{"python", "python arenas", "a \"pool\""};
  static constexpr std::array<std::string_view, 4> labels{"", "phase 2", "\"\\\n\t\r\x01\x7f", "Gänsefüßchen"};

  unsigned below(std::uint64_t limit) { return static_cast<unsigned>(random_() % limit); }
  bool one_in(unsigned n) { return below(n) == 0; }

  std::uint64_t address() {
    if (addresses_ == Addresses::none) return 0;
    if (addresses_ == Addresses::random) return random_() | 1;
    if (!freed_.empty() && !one_in(3)) {
      const std::uint64_t reused = freed_.back();
      freed_.pop_back();
      return reused;
    }
    return top_ += 16 + 16 * below(8);
  }

  void give(Event& event) {
    const bool names = traits(event.kind).names;
    if (names && !live_.empty() && one_in(2)) {  // pages of the newest block, or of one from before the trace's begin
      event.old_tag = live_.back().tag;
      event.old_address = live_.back().address;
      return;
    }
    if (!names && one_in(10)) return;
    if (live_.empty() || one_in(15)) {  // a block from before the trace's begin
      event.old_tag = 1 + below(first_tag - 1);
      event.old_address = addresses_ == Addresses::none || names ? 0 : random_() | 1;
      return;
    }
    given_ = one_in(2) ? live_.size() - 1 : below(live_.size());
    event.old_tag = live_[given_].tag;
    event.old_address = live_[given_].address;
  }

  /// Numbers of blocks may be left out. Some of the blocks that are ended are not known.
  void use_pool(Event& event) {
    event.label = pools[one_in(9) ? below(pools.size()) : 0];
    if (event.kind == Kind::pool_malloc || pool_blocks_.empty()) {
      event.kind = Kind::pool_malloc;
      if (event.size == 0) event.size = below(512);
      next_pool_block_ += one_in(20) ? below(1000) : 0;
      event.pool_block = next_pool_block_++;
      return pool_blocks_.push_back(event.pool_block);
    }
    const std::size_t given = one_in(2) ? pool_blocks_.size() - 1 : below(pool_blocks_.size());
    event.pool_block = one_in(15) ? 1 + below(next_pool_block_ - 1) : pool_blocks_[given];
    if (event.pool_block == pool_blocks_[given])
      pool_blocks_.erase(pool_blocks_.begin() + static_cast<std::ptrdiff_t>(given));
  }

  void make(Event& event) {
    event.tag = next_tag_ + (one_in(20) ? below(1000) : 0);
    next_tag_ = event.tag + 1;
    event.address = event.old_address != 0 && one_in(3) ? event.old_address : address();
    if (one_in(2)) event.usable = event.bytes() % 1000 + below(64);
  }

  void book(const Event& event) {
    if (event.old_tag >= first_tag && event.ends_block()) {
      if (event.address != event.old_address) freed_.push_back(event.old_address);
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(given_));
    }
    if (event.tag != 0) live_.push_back({event.tag, event.address});
  }

  std::mt19937_64 random_;
  Addresses addresses_;
  std::size_t live_max_;
  std::vector<Block> live_;
  std::vector<std::uint64_t> freed_;
  std::size_t given_ = 0;
  Tag next_tag_ = first_tag;
  std::vector<std::uint64_t> pool_blocks_;  // that are live
  std::uint64_t next_pool_block_ = 1;
  std::uint64_t run_end_ = 0;
  std::uint64_t top_ = 0x7f0000000000, time_ = 0;
  std::uint32_t thread_ = 0;
};

inline std::vector<Event> random_events(unsigned seed, Addresses addresses, std::size_t count) {
  RandomTrace trace(seed, addresses);
  std::vector<Event> all;
  while (all.size() < count) all.push_back(trace.next());
  return all;
}

inline std::vector<std::string> lines(std::span<const Event> events) {
  std::vector<std::string> all;
  for (const Event& event : events) all.push_back(to_line(event));
  return all;
}

/// A descriptor of a file in memory with these bytes, at its begin.
inline int file_of(std::string_view bytes) {
  const int fd = memfd_create("trace", MFD_CLOEXEC);
  if (fd < 0 || pwrite(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) abort();
  return fd;
}

inline std::string bytes_of(int fd) {
  std::string bytes(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  if (pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) abort();
  close(fd);
  return bytes;
}

inline WriteOptions in_blocks_of(std::uint32_t events) {
  WriteOptions options;
  options.block_events = events;
  return options;
}

/// The file that a Writer makes of these events. The Writer has to accept all of them.
inline std::string written(std::span<const Event> events, WriteOptions options, Header header = {}) {
  const int fd = file_of("");
  Writer writer(fd, std::move(header), options);
  for (const Event& event : events) {
    if (!writer.add(event)) throw std::logic_error("refused: " + to_line(event));
  }
  writer.finish();
  return bytes_of(fd);
}

/// All results of a Reader of a file.
struct WhatWasRead {
  std::vector<std::string> lines;
  bool truncated = false;
  std::uint64_t defects = 0;
  std::vector<std::string> messages;  // of defects
  std::string error;                  // of a FormatError
};

inline WhatWasRead read_all(std::string_view bytes, ReadOptions options = {}) {
  WhatWasRead all;
  options.on_defect = [&](const Defect& defect) { all.messages.push_back(defect.place + ": " + defect.what); };
  try {
    Reader reader(file_of(bytes), "app", options);
    reader.accept_samples();
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const Event& event : events) all.lines.push_back(to_line(event));
    }
    all.truncated = reader.truncated();
    all.defects = reader.defects();
  } catch (const FormatError& error) {
    all.error = error.what();
  }
  return all;
}

}  // namespace cmt::fixture
