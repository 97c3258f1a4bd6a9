#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cmt/reader.h"
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

}  // namespace trace2cmt
