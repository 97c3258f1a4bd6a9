// The sections of a .cmt: file header, headers of blocks, index, totals and tail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/header.h"
#include "cmt/reader.h"
#include "libcmt/format/core.h"

namespace cmt::format {

/// Functions are in the order of format-spec/cmt.md: put_ encodes, take_ decodes. Decoders throw WireError with the
/// offset in their argument.

/// CRC-32 of ISO 3309, as in zlib.
std::uint32_t crc32(std::string_view bytes);

/// Magic, version and header, with its checksum. The version is 2 if the trace is sampled.
std::string put_file_header(const Header& header);

/// Returns the size of the whole file header, or nullopt if `start` is too short.
std::optional<std::size_t> file_header_size(std::string_view start);
Header take_file_header(std::string_view bytes);

enum class SectionType : std::uint32_t {
  block = 0x4b434c42,   // "BLCK"
  index = 0x58444e49,   // "INDX"
  totals = 0x4c544f54,  // "TOTL"
  tail = 0x4c494154,    // "TAIL"
  names = 0x454d414e,   // "NAME"
};

/// The begin of every section: type, size of its header, size of its body. The header's checksum covers these too.
struct SectionStart {
  static constexpr std::size_t size = 12;
  std::uint32_t type;
  std::uint32_t header_size;
  std::uint32_t body_size;

  /// Bytes of the whole section.
  std::uint64_t total() const { return size + std::uint64_t{header_size} + 4 + body_size; }
};

SectionStart take_section_start(std::string_view bytes);

/// A section without its body: start, header, checksum.
std::string put_section(SectionType type, std::string_view header, std::uint32_t body_size = 0);

/// The header of a section, its checksum verified.
std::string_view take_section_header(std::string_view section, const SectionStart& start);

enum class StreamId : std::uint8_t {
  core = 1,
  addresses = 2,
  live = 3,  // the keyframe's table
  times = 4,
  usable = 5,
  stacks = 6,        // their numbers
  stack_nodes = 7,   // the stacks that are new in the block
  origins = 8,       // of the live blocks, at a keyframe
  pool_stacks = 9,   // the numbers of the stacks of pools' events
  frame_names = 10,  // of the interpreters' frames that are new in the block
};

struct StreamStart {
  std::uint64_t id;
  std::uint64_t raw_size;
  std::uint64_t size;
};

struct BlockHeader {
  std::uint64_t first_event = 0;  ///< counted from 0
  std::uint32_t events = 0;
  CoreState core{};
  std::uint64_t time_ns = 0;  ///< of the event before
  bool keyframe = false;      ///< addresses start afresh here
  std::vector<StreamStart> streams{};
  std::vector<std::string> pools{};  ///< the names of the pools of the block's events

  bool has(StreamId id) const;
  std::string put() const;
  static BlockHeader take(std::string_view header);

  /// Returns the index entry of this block, whose section is at `offset` in the file.
  BlockStart start_at(std::uint64_t offset) const { return {first_event, core.next_tag, time_ns, offset, keyframe}; }
};

/// `names_offset`: of the section of names in the file; 0: the file has none.
std::string put_index(const std::vector<BlockStart>& blocks, std::uint64_t names_offset = 0);
std::vector<BlockStart> take_index(std::string_view header);
std::uint64_t take_names_offset(std::string_view index_header);

std::string put_totals(const Totals& totals);
Totals take_totals(std::string_view header);

/// The last section, which has a fixed size and points to index and totals.
inline constexpr std::size_t tail_size = SectionStart::size + 16 + 4;
std::string put_tail(std::uint64_t index_offset, std::uint64_t totals_offset);
struct Tail {
  std::uint64_t index_offset;
  std::uint64_t totals_offset;
};
Tail take_tail(std::string_view header);

/// Whether the last bytes of a file are a tail. A file that was cut off ends anywhere.
bool is_tail(std::string_view bytes);

}  // namespace cmt::format
