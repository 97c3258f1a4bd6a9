#pragma once

#include <cstdint>
#include <set>

#include "filter.h"
#include "libcmt/block_table.h"

namespace trace2cmt {

/// Lets the events of some threads through, in such a way that they replay by themselves: what ends a block of theirs
/// stays, whoever does it, and what they do to others' blocks does not.
///
/// | event | becomes |
/// |---|---|
/// | another thread frees a block of theirs | itself |
/// | another thread resizes a block of theirs | a free by that thread |
/// | they free a block of another thread | nothing |
/// | they resize one | a realloc of NULL |
/// | a mark | itself, whoever made it |
///
/// A block is of the thread that allocated it, a realloc's of the one that resized it.
class ThreadChoice : public Filter {
 public:
  explicit ThreadChoice(std::set<std::uint32_t> threads) : threads_(std::move(threads)) {}

  void add(const cmt::Event& event, const Emit& emit) override;

 private:
  struct Block {
    cmt::Tag tag = 0;
  };

  void add_own(cmt::Event event, const Emit& emit);
  void add_other(const cmt::Event& event, const Emit& emit);

  std::set<std::uint32_t> threads_;
  cmt::BlockTable<Block> blocks_;  // that live, of the threads chosen
  cmt::Tag first_tag_ = cmt::unknown;
};

}  // namespace trace2cmt
