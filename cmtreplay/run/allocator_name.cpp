#include "cmtreplay/run/allocator_name.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_character(char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether "NAME=" stands at the beginning.
bool begins_setting(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_character);
  return end != text.end() && *end == '=';
}

/// The place of the next comma at which a setting begins, or the end.
std::size_t next_setting(std::string_view text, std::size_t from) {
  for (auto comma = text.find(',', from); comma != text.npos; comma = text.find(',', comma + 1)) {
    if (begins_setting(text.substr(comma + 1))) return comma;
  }
  return text.size();
}

/// Numbers in a path by value, so that llvm-19 comes before llvm-9.
std::vector<int> numbers_of(std::string_view text) {
  std::vector<int> numbers;
  for (const char* at = text.data(); at != text.data() + text.size(); ++at) {
    int number = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), number);
    if (error != std::errc() || *at == '-') continue;
    numbers.push_back(number);
    at = end - 1;
  }
  return numbers;
}

bool is_scudo(const fs::path& path) {
#if defined(__x86_64__)
  constexpr std::string_view machine = "x86_64";
#elif defined(__aarch64__)
  constexpr std::string_view machine = "aarch64";
#else
  constexpr std::string_view machine = "";
#endif
  const std::string name = path.filename();
  if (name == "libclang_rt.scudo_standalone.so") return path.string().find(machine) != std::string::npos;
  return name == "libclang_rt.scudo_standalone-" + std::string(machine) + ".so";
}

/// What the loader knows packaged allocators as.
const std::map<std::string, std::vector<std::string>>& sonames() {
  static const std::map<std::string, std::vector<std::string>> names{
      {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so.1"}},
      {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}},
      {"mimalloc", {"libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so.3"}},
      {"tbb", {"libtbbmalloc_proxy.so.2"}},
  };
  return names;
}

/// PREFIX/lib/llvm-N/lib/clang/V/lib/linux, and PREFIX/lib/clang/V/lib/TARGET.
std::vector<std::string> scudo_files(const fs::path& root) {
  std::vector<std::string> files;
  std::vector<fs::path> clangs{root / "lib" / "clang"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "lib", error)) {
    if (entry.path().filename().string().starts_with("llvm-")) clangs.push_back(entry.path() / "lib" / "clang");
  }
  for (const fs::path& clang : clangs) {
    for (auto entry = fs::recursive_directory_iterator(clang, error); entry != fs::recursive_directory_iterator();
         entry.increment(error)) {
      if (is_scudo(entry->path())) files.push_back(entry->path());
      if (error) break;
    }
  }
  std::sort(files.begin(), files.end(),
            [](const std::string& a, const std::string& b) { return numbers_of(a) > numbers_of(b); });
  return files;
}

}  // namespace

AllocatorName parse_allocator_name(std::string_view text) {
  std::size_t at = next_setting(text, 0);
  AllocatorName result{.name = std::string(text.substr(0, at))};
  while (at < text.size()) {
    const std::size_t end = next_setting(text, at + 1);
    result.settings.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return result;
}

std::string file_name_of(std::string_view allocator) {
  const AllocatorName parsed = parse_allocator_name(allocator);
  const auto slash = parsed.name.rfind('/');
  std::string name = slash == parsed.name.npos ? parsed.name : parsed.name.substr(slash + 1);
  for (const std::string& setting : parsed.settings) name += "_" + setting;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_character(c) && c != '.' && c != '-'; }, '_');
  return name;
}

bool is_short_name(const std::string& name) { return name == "scudo" || sonames().contains(name); }

std::vector<std::string> packaged_files(const std::string& short_name, const std::string& root) {
  if (short_name == "scudo") return scudo_files(root);
  const auto known = sonames().find(short_name);
  return known == sonames().end() ? std::vector<std::string>() : known->second;
}

}  // namespace cmt::replay
