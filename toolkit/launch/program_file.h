/// Reads from the ELF headers (elf(5)) of an executable file how it is started and which allocator it contains.
#pragma once

#include <string>

namespace cmt::launch {

struct ProgramFile {
  bool is_elf = false;          ///< all below is only meant where this is set
  bool is_64_bit = false;       ///< of little-endian numbers; what is below only where this is set
  bool is_for_us = false;       ///< for the processor that this program is for
  std::string interpreter{};    ///< the dynamic loader's path; empty: it is linked statically
  bool exports_malloc = false;  ///< it defines malloc for itself and for its libraries
  std::string sanitizer{};      ///< the one it was built with, as gcc's option names it: "address"; empty: none
  std::string allocator{};      ///< a function that an allocator inside of it has: "je_malloc"; empty: none is known
};

/// Reads the file. A damaged file gives as much as can be read, a missing one nothing.
ProgramFile read_program_file(const std::string& path);

}  // namespace cmt::launch
