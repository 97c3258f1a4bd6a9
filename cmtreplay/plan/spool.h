#pragma once

#include <cstdint>

#include "toolkit/process/proc_file.h"

namespace cmt::replay {

/// Chunks of operations in a temporary file without a name (open_temporary_file(), libcmt/trace/files.h). Functions
/// throw std::system_error.
class Spool {
 public:
  Spool();

  void write(std::uint32_t chunk, const std::uint64_t* words);
  /// Zeros, where the chunk was not written whole.
  void read(std::uint32_t chunk, std::uint64_t* words) const;

 private:
  process::Fd file_;
};

}  // namespace cmt::replay
