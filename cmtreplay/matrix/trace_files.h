/// Finds the traces of a matrix: files, folders, or the suite with its MANIFEST.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cmt::replay {

/// A trace of the matrix.
struct TraceFile {
  std::string path = {};
  std::string name = {};     ///< the name of its file, without the endings
  std::string sha256 = {};   ///< the hash of its bytes
  std::uint64_t weight = 0;  ///< for the time left: its events by the manifest, else its bytes
};

/// The traces that operands name: files, and folders. From a folder it takes all .cmt and .trace files, also compressed
/// ones, sorted by name. It takes a file that occurs twice once. Throws std::system_error, and std::runtime_error for a
/// folder without traces.
std::vector<TraceFile> find_traces(const std::vector<std::string>& operands);

/// The suite's traces, in the order of its MANIFEST. `quick` takes only those that the MANIFEST marks as quick. Throws
/// as find_traces() does, and also if a trace's hash is not the one of the MANIFEST.
std::vector<TraceFile> find_suite(bool quick);

/// A row of a MANIFEST.
struct ManifestRow {
  std::string file = {};
  std::string sha256 = {};
  std::uint64_t events = 0;
  bool is_quick = false;
};

/// Reads the rows of a MANIFEST. Its first line has the columns' titles: file, events, sha256 and quick are read. Each
/// further line is a trace. Columns are separated by tabs or, if the first line has none, by blanks. Lines that begin
/// with # are comments. Throws FormatError.
std::vector<ManifestRow> parse_manifest(const std::string& text, const std::string& name);

}  // namespace cmt::replay
