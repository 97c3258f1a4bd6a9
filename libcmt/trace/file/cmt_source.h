/// Reads a .cmt, from its begin or from any block. How threads share the work is in cmt_source.cpp.
#pragma once

#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "libcmt/trace/file/block_decoder.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// Reads a .cmt. Returns the events of the whole blocks of an input that is cut off.
class CmtSource : public Source {
 public:
  CmtSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log);

  std::span<const Event> read() override;
  bool reads_in_steps() const override { return true; }
  void read_core(ReadStep& step, std::span<Event> events) override;
  void complete(ReadStep& step, std::span<Event> events) override;
  const std::vector<BlockStart>& blocks() override;
  std::optional<std::uint64_t> go_to(std::uint64_t event) override;
  bool read_stacks() override;
  std::vector<LiveBlock> list_live_before(const BlockStart& keyframe) override;
  std::optional<format::Origins> list_origins_before(const BlockStart& keyframe) override;

 private:
  /// A block that is read; `bytes` becomes ready when it is decompressed.
  struct Ahead {
    std::uint64_t offset;  // of its section
    bool fresh;            // it follows a jump
    std::future<BlockBytes> bytes;
  };

  void read_header();
  void find_tail();
  template <typename Take>
  auto take_from_tail(std::uint64_t offset, format::SectionType type, const char* what, const Take& take);
  void check_index() const;
  void define_stacks_before(std::uint64_t offset);
  void define_stacks_of(const BlockStart& block);
  template <typename Take>
  void take_stream_of(const BlockStart& block, format::StreamId id, const Take& take);
  void find_names();
  void take_names(std::string_view section, const format::SectionStart& start);
  void end_stacks();
  bool next_block();
  void read_ahead();
  bool take_section();
  void take_block(std::string_view section, const format::SectionStart& start);
  void cut_off(const std::string& what);
  void count_repairs();
  [[noreturn]] void fail(const format::WireError& error) const;

  ReadOptions options_;
  format::Decompressor decompressor_;
  std::optional<format::Tail> tail_;  // if the input can seek and is whole
  std::optional<std::vector<BlockStart>> blocks_;
  std::optional<BlockStart> jumped_to_;  // the block that go_to() found in the index, until it is read

  std::deque<Ahead> ahead_;
  std::exception_ptr ahead_error_;    // thrown after the blocks in ahead_
  std::uint64_t section_offset_ = 0;  // of the section that is read or decoded
  std::uint64_t events_ahead_ = 0;    // in blocks read, for the check against the next block's header
  bool fresh_ = true;                 // the next block is the first, or follows a jump
  bool at_end_ = false;

  std::string names_;               // content of the section of names
  std::uint64_t names_offset_ = 0;  // of its frame
  bool names_are_known_ = false;

  BlockDecoder decoder_;
  Repairs stated_repairs_;  // known once the totals were read
  std::uint64_t unknown_kinds_ = 0;
};

}  // namespace cmt
