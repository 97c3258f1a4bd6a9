// Lists folders, reads the MANIFEST, and hashes each trace, so that a cell names what it was measured on.
#include "cmtreplay/matrix/trace_files.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "cmt/error.h"
#include "libcmt/format/coding.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/files/sha256.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/proc_mount.h"

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

constexpr const char* manifest_name = "MANIFEST";

/// The name without the endings of traces and of compressed files, or nothing if the file is no trace.
std::optional<std::string> trace_name(const std::string& file) {
  std::string name = file;
  for (const char* const packed : {".gz", ".zst", ".xz", ".bz2"}) {
    if (name.ends_with(packed)) name.resize(name.size() - std::char_traits<char>::length(packed));
  }
  for (const char* const ending : {".cmt", ".trace"}) {
    const std::size_t length = std::char_traits<char>::length(ending);
    if (name.ends_with(ending) && name.size() > length) return name.substr(0, name.size() - length);
  }
  return std::nullopt;
}

/// Whether a file begins as a sampled trace. A damaged file does not: it makes a cell with the reason.
bool begins_sampled(const std::string& path) {
  try {
    const auto input = command::open_decompressed(path);
    const std::string_view start = input->peek(format::longest_start);
    return start.starts_with(format::magic) && start.size() >= format::longest_start &&
           format::Cursor(start.substr(format::magic.size())).u32() == format::version_of_samples;
  } catch (const FormatError&) {
    return false;
  }
}

TraceFile trace_file(const fs::path& path) {
  const std::string file = path.filename().string();
  if (fs::exists(path) && !fs::is_regular_file(path))
    throw std::runtime_error(path.string() +
                             ": is no regular file, and a trace of a matrix is read more than once; copy it to one");
  TraceFile trace{.path = path.string(), .name = trace_name(file).value_or(file)};
  trace.sha256 = files::sha256_of_file(trace.path);
  trace.weight = std::max<std::uint64_t>(1, fs::file_size(path));
  if (begins_sampled(trace.path)) command::open_trace(trace.path);  // refuses it before any cell is measured
  return trace;
}

std::vector<fs::path> traces_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (trace_name(entry.path().filename().string()) && entry.is_regular_file()) paths.push_back(entry.path());
  }
  if (paths.empty()) throw std::runtime_error(folder.string() + ": the folder has no .cmt and no .trace");
  std::sort(paths.begin(), paths.end());
  return paths;
}

void add_once(std::vector<TraceFile>& traces, TraceFile trace) {
  const auto is_same = [&trace](const TraceFile& other) { return other.sha256 == trace.sha256; };
  if (std::none_of(traces.begin(), traces.end(), is_same)) traces.push_back(std::move(trace));
}

std::vector<std::string> cells_of(const std::string& line, bool by_tabs) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; by_tabs ? !std::getline(stream, cell, '\t').fail() : !(stream >> cell).fail();)
    cells.push_back(cell);
  return cells;
}

/// The indexes of the columns of a MANIFEST that are read.
struct Columns {
  std::size_t file, events, sha256, quick, most;

  Columns(const std::vector<std::string>& titles, const std::string& place) {
    const auto find = [&](const char* title) {
      const auto found = std::find(titles.begin(), titles.end(), title);
      if (found == titles.end()) throw FormatError(place, std::string("expected a column \"") + title + '"');
      return static_cast<std::size_t>(found - titles.begin());
    };
    file = find("file");
    events = find("events");
    sha256 = find("sha256");
    quick = find("quick");
    most = std::max({file, events, sha256, quick});
  }
};

ManifestRow row_of(const std::vector<std::string>& cells, const Columns& columns, const std::string& place) {
  if (cells.size() <= columns.most) throw FormatError(place, "expected as many columns as the first line has");
  ManifestRow row{
      .file = cells[columns.file], .sha256 = cells[columns.sha256], .is_quick = cells[columns.quick] == "yes"};
  std::string digits = cells[columns.events];
  std::erase(digits, ',');
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), row.events);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw FormatError(place, "expected a number of events, not '" + cells[columns.events] + "'");
  if (row.file.empty() || row.file.find('/') != row.file.npos) throw FormatError(place, "expected the name of a file");
  return row;
}

/// The folder of the suite: CMT_CORPUS, the installed one, or the one of the source tree.
fs::path suite_folder() {
  if (const char* const given = std::getenv("CMT_CORPUS"); given != nullptr && *given != '\0') return given;
  std::error_code error;
  const fs::path bin = process::own_program().parent_path();
  const fs::path installed = (bin / CMT_CORPUS_FROM_BIN).lexically_normal();
  if (fs::exists(installed / manifest_name, error)) return installed;
  // In a build tree, the sources are in a folder above.
  for (fs::path folder = bin; folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "corpus" / manifest_name, error)) return folder / "corpus";
  }
  throw std::runtime_error(
      "the suite is not installed: no " + (installed / manifest_name).string() +
      "; install the package cmt-corpus, or set CMT_CORPUS to the folder corpus/ of cmt's sources");
}

}  // namespace

std::vector<TraceFile> find_traces(const std::vector<std::string>& operands) {
  std::vector<TraceFile> traces;
  for (const std::string& operand : operands) {
    if (!fs::is_directory(operand)) {
      add_once(traces, trace_file(operand));
      continue;
    }
    for (const fs::path& path : traces_in(operand)) add_once(traces, trace_file(path));
  }
  return traces;
}

std::vector<ManifestRow> parse_manifest(const std::string& text, const std::string& name) {
  std::vector<ManifestRow> rows;
  std::optional<Columns> columns;
  bool by_tabs = false;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = name + ":" + std::to_string(++number);
    if (line.empty() || line[0] == '#') continue;
    if (!columns) {
      by_tabs = line.find('\t') != line.npos;
      columns.emplace(cells_of(line, by_tabs), place);
    } else {
      rows.push_back(row_of(cells_of(line, by_tabs), *columns, place));
    }
  }
  if (rows.empty()) throw FormatError(name, "has no traces");
  return rows;
}

std::vector<TraceFile> find_suite(bool quick) {
  const fs::path folder = suite_folder();
  const std::string manifest = (folder / manifest_name).string();
  std::vector<TraceFile> traces;
  for (const ManifestRow& row : parse_manifest(process::read_file(manifest), manifest)) {
    if (quick && !row.is_quick) continue;
    TraceFile trace = trace_file(folder / row.file);
    if (trace.sha256 != row.sha256)
      throw std::runtime_error(trace.path + ": is not the trace of the MANIFEST: its SHA-256 is " + trace.sha256);
    trace.weight = std::max<std::uint64_t>(1, row.events);
    traces.push_back(std::move(trace));
  }
  if (traces.empty()) throw FormatError(manifest, "has no trace for --suite=quick");
  return traces;
}

}  // namespace cmt::replay
