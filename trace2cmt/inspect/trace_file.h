#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/sections.h"
#include "trace2cmt/input/open_log.h"

namespace trace2cmt {

/// A trace whose bytes can be read at any offset: a file, or a copy of the bytes of a pipe. Throws std::system_error.
class TraceFile {
 public:
  /// `path` "-" is standard input.
  TraceFile(const std::string& path, From from);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  bool is_cmt() const;

  /// Up to `count` bytes from `offset`; fewer where the file ends.
  std::string at(std::uint64_t offset, std::uint64_t count) const;

  /// "app.cmt: offset 0x1f3".
  std::string place(std::uint64_t offset) const;

  /// A reader at the begin of the trace.
  cmt::Reader reader(cmt::ReadOptions options) const;

 private:
  std::string name_;
  From from_;
  int fd_;
  std::uint64_t size_ = 0;
};

/// A section of a .cmt without its body, its checksum verified.
struct Section {
  std::uint64_t offset = 0;
  cmt::format::SectionStart start{};
  std::string header;

  bool is(cmt::format::SectionType type) const { return start.type == static_cast<std::uint32_t>(type); }
  std::uint64_t end() const { return offset + start.total(); }
};

/// The section that begins at an offset; nothing where the file ends before it does. Throws cmt::format::WireError with
/// the offset in the file.
std::optional<Section> section_at(const TraceFile& file, std::uint64_t offset);

/// Runs `step`, which decodes bytes from an offset in the file. The offset of an error becomes one in the file.
template <typename Step>
auto at_offset(std::uint64_t offset, const Step& step) {
  try {
    return step();
  } catch (const cmt::format::WireError& error) {
    throw cmt::format::WireError(offset + error.offset(), error.what());
  }
}

/// Decodes the header of a section with `take`.
template <typename Take>
auto take_fields(const Section& section, const Take& take) {
  return at_offset(section.offset + cmt::format::SectionStart::size, [&] { return take(section.header); });
}

/// What the index of a .cmt states.
struct IndexedBlocks {
  std::vector<std::uint64_t> offsets;  ///< of the blocks of the stream
  std::uint64_t index_offset = 0;
};

/// Nothing where the end of the file is missing. Throws cmt::format::WireError with the offset in the file.
std::optional<IndexedBlocks> indexed_blocks(const TraceFile& file);

}  // namespace trace2cmt
