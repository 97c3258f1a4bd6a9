/// Asks an allocator which of its settings it takes.
///
/// Allocators ignore a setting that they do not know, mostly without a word: an old version, a typing error, a value
/// out of range. So the installed library is asked, each in its own way:
///
///     glibc     ld.so --list-tunables, and the limits of its malloc, which are not in that list
///     jemalloc  mallctl("opt.NAME"), in a worker with the setting
///     mimalloc  the list of options that it prints with MIMALLOC_VERBOSE=1
///     tcmalloc  MallocExtension_GetNumericProperty where there is one, else whether its file contains the name
///     others    whether their file contains the name
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/run/allocator.h"

namespace cmt::replay {

enum class Understood { yes, no, unknown };

/// Whether an allocator takes one of its settings.
struct SettingAnswer {
  std::string setting = {};  ///< as it is given: "glibc.malloc.arena_max=1", "narenas:1"
  Understood understood = Understood::unknown;
  std::string reason = {};  ///< of any answer but yes, in words
};

/// One setting of an environment: GLIBC_TUNABLES, MALLOC_CONF and SCUDO_OPTIONS contain several.
struct SettingPart {
  std::string variable = {}, key = {}, value = {};
  std::string text = {};  ///< as it is written in the variable, or the whole "NAME=VALUE"
};

std::vector<SettingPart> parts_of(const std::vector<std::string>& settings);

/// The kind of allocator that a library is: libc, jemalloc, mimalloc, tcmalloc, tbb, scudo. Empty: another one.
std::string kind_of(const Allocator& allocator);

/// Asks the library about each part of the allocator's settings. Throws std::system_error.
std::vector<SettingAnswer> ask_settings(const std::string& worker, const Allocator& allocator,
                                        unsigned timeout_seconds);

/// "jemalloc,MALLOC_CONF=narena:1: MALLOC_CONF narena:1 is ignored: ...": a line for each setting that is ignored.
std::vector<std::string> ignored_lines(const std::string& worker, const Allocator& allocator, unsigned timeout_seconds);

}  // namespace cmt::replay
