#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// What a part of a process's memory is for.
struct Part {
  std::string name;
  std::uint64_t mappings = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t proportional_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t swapped_bytes = 0;
};

/// The memory of a moment in parts, in this order: stacks, thread stacks (guessed), heap, anonymous, sockets; then the
/// largest of the others by name, and what is left as "others". Parts without mappings are left out.
struct Breakdown {
  std::vector<Part> parts;
  Part sum;  ///< of all parts
};

/// `mappings` of one process, by rising address. Kernels no longer name the stacks of threads: an unnamed mapping
/// behind a guard that pthreads makes (unreadable, unnamed, at most 64 KiB) is taken for one, and said to be guessed.
/// An unnamed private writable mapping that begins where the last mapping of a library or program ends is its
/// zero-initialised data (.bss); behind another file that is chance: new mappings are placed below old ones.
std::vector<Part> parts_of(const std::vector<process::Mapping>& mappings);

/// The parts of all processes of a moment added up by name, the largest `named_max` of those with a file's name kept.
Breakdown break_down(const std::vector<std::vector<process::Mapping>>& processes, std::size_t named_max = 20);

}  // namespace cmt::watch
