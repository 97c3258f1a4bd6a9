#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cmt {

/// Where an input's bytes come from, if not straight from its file: what was compressed, decompressed.
class Bytes {
 public:
  virtual ~Bytes() = default;

  /// Up to `room` bytes; 0 only at the end.
  virtual std::size_t read(char* to, std::size_t room) = 0;

  /// What is missing where the bytes end too early, for a message; empty if they are whole. Known at the end.
  virtual std::string missing() const = 0;

  /// Bytes of the file taken so far, and its size (0: not known), for a progress display.
  virtual std::uint64_t taken() const = 0;
  virtual std::uint64_t size() const = 0;
};

}  // namespace cmt
