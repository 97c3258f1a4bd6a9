/// A trace whose bytes --info and --verify read at any offset, and its sections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/format/coding.h"
#include "libcmt/format/sections.h"
#include "libcmt/trace/files.h"
#include "trace2cmt/input/open_log.h"

namespace cmt::trace2cmt {

/// A trace whose bytes can be read at any offset: a file, or a copy of a pipe's bytes. Throws std::system_error.
class TraceFile {
 public:
  /// `path` "-" is standard input.
  TraceFile(const std::string& path, From from);

  std::uint64_t size() const { return input_->size(); }
  const std::string& name() const { return input_->name(); }
  bool is_cmt() const { return at(0, cmt::format::magic.size()) == cmt::format::magic; }

  /// Up to `count` bytes from `offset`; fewer if the file ends before.
  std::string at(std::uint64_t offset, std::uint64_t count) const;

  /// "app.cmt: offset 0x1f3".
  std::string place(std::uint64_t offset) const { return input_->place(offset); }

  /// A reader at the begin of the trace.
  cmt::Reader reader(cmt::ReadOptions options) const;

 private:
  From from_;
  int fd_;  // the input's
  std::unique_ptr<cmt::Input> input_;
};

/// A section of a .cmt without its body, its checksum verified.
struct Section {
  std::uint64_t offset = 0;
  cmt::format::SectionStart start{};
  std::string header;

  bool is(cmt::format::SectionType type) const { return start.type == static_cast<std::uint32_t>(type); }
  std::uint64_t end() const { return offset + start.total(); }
};

/// The section that begins at an offset; nothing if the file ends inside it. Throws cmt::format::WireError with the
/// offset in the file.
std::optional<Section> section_at(const TraceFile& file, std::uint64_t offset);

/// Runs `step`, which decodes bytes from an offset in the file. Changes the offset of an error to one in the file.
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

}  // namespace cmt::trace2cmt
