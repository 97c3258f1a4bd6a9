#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "libcmt/format/cursor.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/zstd.h"

namespace cmt {

/// A block of the stream, out of its section: the header is checked, the streams that are wanted are decompressed. All
/// of decoding that needs nothing of the blocks before, so any thread can do it. Throws format::WireError with offsets
/// from the section's begin.
class BlockBytes {
 public:
  BlockBytes() = default;

  /// `section` whole, its checksum verified; `live`: the table of a keyframe is wanted. Keeps no view of it.
  BlockBytes(std::string_view section, const format::SectionStart& start, const ReadOptions& wanted, bool live,
             format::Decompressor& decompressor);

  const format::BlockHeader& header() const { return header_; }

  /// The content of a stream; empty where there is none, or it is not wanted.
  std::string_view stream(format::StreamId id) const {
    const Stream& stream = streams_[static_cast<std::size_t>(id)];
    return {stream.bytes.get(), stream.size};
  }

  /// Takes a step of decoding a stream. What is wrong in it is reported at its frame's offset, with its name and the
  /// offset in what was decompressed.
  template <typename Decode>
  auto in_stream(format::StreamId id, const Decode& decode) const {
    try {
      return decode();
    } catch (const format::WireError& error) {
      fail_in(id, error);
    }
  }

 private:
  static constexpr std::size_t stream_count = 7;
  struct Stream {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };

  void place_frames(const format::SectionStart& start);
  void decompress(format::StreamId id, std::string_view section, format::Decompressor& decompressor);
  [[noreturn]] void fail_in(format::StreamId id, const format::WireError& error) const;

  format::BlockHeader header_;
  std::array<std::uint64_t, stream_count> frame_offsets_{};  // by stream, in the section; 0 = it has none
  std::array<Stream, stream_count> streams_;
};

/// Decodes the header of a section; offsets of errors are counted from the section's begin.
template <typename Take>
auto take_fields(const Take& take, std::string_view header) {
  try {
    return take(header);
  } catch (const format::WireError& error) {
    throw format::WireError(format::SectionStart::size + error.offset(), error.what());
  }
}

}  // namespace cmt
