/// Finds the traces of a matrix: files, folders, or the suite with its MANIFEST.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cmt::replay {

/// A trace of the matrix.
struct TraceFile {
  std::string path = {};
  std::string name = {};     ///< of its file, without the endings
  std::string sha256 = {};   ///< of its bytes
  std::uint64_t weight = 0;  ///< its events by the manifest, else its bytes: for the time left
};

/// The traces that operands name: files, and folders, of which all .cmt and .trace files are taken, compressed ones
/// too, by name. A file that occurs twice is taken once. Throws std::system_error, and std::runtime_error for a folder
/// without traces.
std::vector<TraceFile> find_traces(const std::vector<std::string>& operands);

/// The suite's traces, in the order of its MANIFEST; `quick`: those only that the MANIFEST has for it. Throws as
/// find_traces(), also where a trace is not the one of the MANIFEST.
std::vector<TraceFile> find_suite(bool quick);

/// A row of a MANIFEST.
struct ManifestRow {
  std::string file = {};
  std::string sha256 = {};
  std::uint64_t events = 0;
  bool is_quick = false;
};

/// The rows of a MANIFEST: a first line with the columns' titles, of which file, events, sha256 and quick are read;
/// then a line for each trace, with columns apart by tabs or, where the first line has none, by blanks. Lines that
/// begin with # are comments. Throws FormatError.
std::vector<ManifestRow> parse_manifest(const std::string& text, const std::string& name);

}  // namespace cmt::replay
