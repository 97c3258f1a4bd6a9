/// What an executable file says about how it is started and which allocator it has: by its ELF headers (elf(5)).
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

/// Reads the file; a file that cannot be read, or is damaged, says as much as can be read.
ProgramFile read_program_file(const std::string& path);

}  // namespace cmt::launch
