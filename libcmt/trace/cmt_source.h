#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "format/addresses.h"
#include "format/columns.h"
#include "format/core.h"
#include "format/sections.h"
#include "format/zstd.h"
#include "trace/input.h"
#include "trace/source.h"

namespace cmt {

/// Reads .cmt, one block of the stream in memory at a time. An input that is cut off yields its whole blocks.
class CmtSource : public Source {
 public:
  CmtSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log);

  std::span<const Event> read() override;

 private:
  static constexpr std::size_t batch_events = 512;  // some 50 KB, so that a batch stays in the cache

  void read_header();
  void read_totals_ahead();
  bool next_block();
  bool take_section();
  void take_block(std::string_view section, const format::SectionStart& start);
  void open_streams(std::string_view section);
  void place_frames(const format::SectionStart& start);
  std::string_view stream(format::StreamId id, std::string_view section, std::string& raw);
  template <typename Decode>
  auto in_stream(format::StreamId id, const Decode& decode);
  template <typename Decoder>
  void fill(format::StreamId id, Decoder& decoder, std::span<Event> events);
  void check_ends();
  void cut_off(const std::string& what);
  [[noreturn]] void fail(const format::WireError& error) const;

  std::unique_ptr<Input> input_;
  const ReadOptions& options_;
  DefectLog& log_;
  format::Decompressor decompressor_;
  std::uint64_t section_offset_ = 0;  // of the section that is decoded
  bool at_end_ = false;
  std::uint64_t events_ = 0;  // handed out, for the check against the block headers
  std::vector<Event> batch_ = std::vector<Event>(batch_events);

  format::BlockHeader block_;
  std::array<std::uint64_t, 7> frame_offsets_{};  // by stream, in the section; 0 = it has none
  std::string core_bytes_, address_bytes_, time_bytes_, usable_bytes_;
  std::unique_ptr<format::CoreDecoder> core_;
  format::AddressDecoder addresses_;
  format::TimeDecoder times_;
  format::UsableDecoder usable_;
};

}  // namespace cmt
