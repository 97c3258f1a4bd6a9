#pragma once

// Functions that the fuzz targets share: they make a file of bytes and read it to the end. A target that does not
// return has found a fault: an exception that bad input may not throw, a broken promise, or a sanitizer's report.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/reader.h"
#include "cmt/text.h"
#include "cmt/writer.h"

namespace cmt::fuzz {

inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", what);
  std::abort();
}

inline int file_of(std::string_view bytes) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  promise(fd >= 0 && pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "room");
  return fd;
}

inline std::string bytes_of(int fd) {
  std::string bytes(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  promise(pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "reading back");
  close(fd);
  return bytes;
}

/// The most events to read: a small file may expand to millions, which is no fault.
inline constexpr std::size_t events_max = 1 << 18;

/// The lines of a trace; `whole` is false if it was refused, broke off, or was too long.
struct Lines {
  std::vector<std::string> lines;
  bool whole = false, refused = false;
  std::uint64_t defects = 0;
};

inline Lines read(Reader&& reader) {
  Lines all;
  try {
    reader.accept_samples();
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      promise(!reader.place(events.size() - 1).empty(), "every event has a place");
      for (const Event& event : events) {
        all.lines.push_back(to_line(event));
        promise(event.stack < reader.stacks().node_count(), "the stack of an event is in the table");
      }
      if (all.lines.size() > events_max) return all;
    }
    all.whole = !reader.truncated();
    all.defects = reader.defects();
  } catch (const FormatError&) {
    all.refused = true;
  }
  return all;
}

inline Lines read(std::string_view bytes, ReadOptions options = {}) {
  try {
    return read(Reader(file_of(bytes), "fuzz", options));
  } catch (const FormatError&) {
    return {.lines = {}, .refused = true};
  }
}

/// Writes the trace that a reader returns in a format, without contradictory events.
inline std::string rewritten(std::string_view bytes, Format format, std::uint32_t block_events) {
  ReadOptions options;
  options.stacks = true;
  Reader reader(file_of(bytes), "fuzz", options);
  reader.accept_samples();
  const int fd = file_of("");
  Writer writer(fd, reader.header(), {.format = format, .block_events = block_events});
  writer.use_stacks(reader.stacks());
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) writer.add(event);
    if (writer.totals().events > events_max) break;
  }
  writer.finish(reader.repairs(), reader.truncated());
  return bytes_of(fd);
}

}  // namespace cmt::fuzz
