// Finds packages by the folders into which Python's installers put them.
#include "analysis/stacks/function_names/python_frames.h"

#include <algorithm>
#include <array>

namespace cmt::analysis {
namespace {

constexpr std::string_view standard_prefix = "python stdlib: ", frozen = "<frozen ", dynamic = "lib-dynload/";
constexpr std::array<std::string_view, 2> installed_folders{"/site-packages/", "/dist-packages/"};

/// Returns the path below ".../lib/python3.11/" or ".../lib64/python3.11/", or else an empty text.
std::string_view below_standard(std::string_view path) {
  const std::size_t at = path.rfind("/python3.");
  const std::size_t end = at == std::string_view::npos ? at : path.find('/', at + 1);
  if (end == std::string_view::npos) return {};
  const std::string_view folder = path.substr(0, at);
  return folder.ends_with("/lib") || folder.ends_with("/lib64") ? path.substr(end + 1) : std::string_view();
}

std::string_view below_installed(std::string_view path) {
  for (const std::string_view folder : installed_folders) {
    const std::size_t at = path.rfind(folder);
    if (at != std::string_view::npos) return path.substr(at + folder.size());
  }
  return {};
}

/// "numpy/core/numeric.py" -> "numpy", "six.py" -> "six", "_json.cpython-311-x.so" -> "_json"
std::string_view first_part(std::string_view path) { return path.substr(0, path.find_first_of("/.>")); }

std::string standard_name(std::string_view path) {
  if (path.starts_with(dynamic)) path.remove_prefix(dynamic.size());
  std::string_view name = first_part(path);
  if (name.starts_with('_') && !name.starts_with("__")) name.remove_prefix(1);  // the C part of a module
  return std::string(standard_prefix) + std::string(name);
}

}  // namespace

PythonPackage python_package(std::string_view file) {
  if (const std::string_view path = below_installed(file); !path.empty())
    return {PythonOrigin::installed, std::string(first_part(path))};
  if (file.starts_with(frozen)) return {PythonOrigin::standard, standard_name(file.substr(frozen.size()))};
  if (const std::string_view path = below_standard(file); !path.empty())
    return {PythonOrigin::standard, standard_name(path)};
  const std::size_t slash = file.starts_with('<') ? std::string_view::npos : file.rfind('/');
  if (slash == std::string_view::npos) return {PythonOrigin::own, "(program)"};
  return {PythonOrigin::own, std::string(file.substr(0, std::max<std::size_t>(slash, 1)))};
}

bool is_of_python_package(std::string_view module_path) {
  return !below_installed(module_path).empty() || is_of_standard_library(module_path);
}

bool is_of_standard_library(std::string_view module_path) { return below_standard(module_path).starts_with(dynamic); }

std::string_view python_file(std::string_view file) {
  if (file.starts_with('<')) return file;
  if (const std::string_view path = below_installed(file); !path.empty()) return path;
  if (const std::string_view path = below_standard(file); !path.empty()) return path;
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return file;
  const std::size_t before = file.rfind('/', slash - 1);
  return before == std::string_view::npos ? file : file.substr(before + 1);
}

std::string python_function(const FrameName& name, bool has_line) {
  std::string text(name.function.empty() ? "?" : name.function);
  if (name.file.empty()) return text;
  text.append(" (").append(python_file(name.file));
  if (has_line && name.line != 0) text.append(":").append(std::to_string(name.line));
  return text += ')';
}

bool is_python_function(std::string_view text) {
  if (!text.ends_with(')')) return false;
  const std::size_t bracket = text.rfind(" (");
  if (bracket == std::string_view::npos || bracket == 0) return false;
  std::string_view file = text.substr(bracket + 2, text.size() - bracket - 3);
  const std::size_t digits = file.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && file[digits] == ':') file = file.substr(0, digits);
  return file.ends_with(".py") || (file.starts_with('<') && file.ends_with('>'));
}

}  // namespace cmt::analysis
