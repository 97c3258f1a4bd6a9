#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cmt::replay {

/// What an --alloc says: "jemalloc,MALLOC_CONF=background_thread:true" is a name and what to set in its environment.
struct AllocatorName {
  std::string name = {};
  std::vector<std::string> settings = {};  ///< "NAME=VALUE" each
};

/// Settings begin at a comma that is followed by a variable's name and `=`, so that values and paths may hold commas.
AllocatorName parse_allocator_name(std::string_view text);

/// For files: what is no letter, digit, dot, dash or underline becomes an underline; of a path the last part is taken.
std::string file_name_of(std::string_view allocator);

/// Whether it is a short name: jemalloc, tcmalloc, mimalloc, tbb or scudo.
bool is_short_name(const std::string& name);

/// Sonames and paths that a packaged allocator is found by under its short name, the likeliest first; empty for any
/// other name. scudo is no library of the loader's: compilers bring it along, under `root`/lib.
std::vector<std::string> packaged_files(const std::string& short_name, const std::string& root = "/usr");

}  // namespace cmt::replay
