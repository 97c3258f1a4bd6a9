/// Reads and writes the memory of another process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "toolkit/process/proc_file.h"

namespace cmt::remote_call {

/// The memory of another process, through /proc/PID/mem. It is the memory of the program that ran when this object was
/// made: after the process calls exec, nothing can be read any more.
class RemoteMemory {
 public:
  /// Throws std::system_error.
  explicit RemoteMemory(int pid);

  /// Returns false if not all of it can be read.
  bool read(std::uint64_t address, void* to, std::size_t bytes) const;

  template <class T>
  std::optional<T> read(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    return read(address, &value, sizeof value) ? std::optional<T>(value) : std::nullopt;
  }

  /// The same through copies of pages, each of which is read once: for code and tables, which do not change.
  bool read_kept(std::uint64_t address, void* to, std::size_t bytes) const;

  template <class T>
  std::optional<T> read_kept(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    return read_kept(address, &value, sizeof value) ? std::optional<T>(value) : std::nullopt;
  }

  /// The bytes from an address to the end of its page, kept as long as this object; empty if they cannot be read.
  std::span<const std::uint8_t> kept_from(std::uint64_t address) const;

  /// Returns a text that ends with a 0 byte, cut to 256 bytes. Reads copies of pages, too.
  std::string read_text(std::uint64_t address) const;

  /// Returns false if not all of it can be written.
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;

 private:
  static constexpr std::size_t page_bytes = 4096;
  using Page = std::array<std::uint8_t, page_bytes>;

  process::Fd fd_;
  mutable std::unordered_map<std::uint64_t, Page> pages_;
};

}  // namespace cmt::remote_call
