/// Splits a mapping that holds both the zero-initialised data of a library and anonymous memory.
#pragma once

#include <cstdint>
#include <string>

#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// The zero-initialised data (.bss) of a program or library follows its file's last mapping, in a mapping without a
/// name. The kernel merges this mapping with anonymous memory that follows. So only the file has the end of the data:
/// the end in memory of the segment whose data in the file end just before (elf(5)).
///
/// Returns how many of a mapping's first bytes are such data of the file that is mapped just before. Returns 0 if there
/// are none, or the file cannot be used: it is not a 64-bit one, or another file now has its name. `root` is the /proc
/// through which the process's files are found.
std::uint64_t zero_data_bytes(const process::Mapping& before, const process::Mapping& mapping, int pid,
                              const std::string& root);

}  // namespace cmt::watch
