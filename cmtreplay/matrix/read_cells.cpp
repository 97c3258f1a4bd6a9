// Reads cells back from their JSON. It is the only file of this tool that includes nlohmann/json
// (toolkit/output/read_fields.h).
#include <algorithm>
#include <filesystem>

#include "cmt/error.h"
#include "cmtreplay/matrix/cell_store.h"
#include "libcmt/trace/files.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/read_fields.h"

namespace cmt::replay {
namespace {

using output::Json;

Cell cell_of(const Json& json) {
  if (output::member(json, "schema") != std::string(cell_schema))
    throw std::invalid_argument("not of schema " + std::string(cell_schema));
  Cell cell;
  output::FieldReader::read_object(json, cell);
  return cell;
}

/// Parses a file, and calls read(JSON).
template <class Read>
auto read_json_file(const std::string& path, const char* what, Read read) {
  const auto input = command::open_decompressed(path);
  const std::string_view text = command::read_whole(*input);
  const auto fail = [&](const std::exception& error) {
    throw FormatError(path, std::string("not ") + what + ": " + error.what());
  };
  try {
    return read(Json::parse(text));
  } catch (const Json::parse_error& error) {
    throw FormatError(input->place(error.byte == 0 ? 0 : error.byte - 1), "not valid JSON");
  } catch (const Json::exception& error) {
    fail(error);
    throw;
  } catch (const std::invalid_argument& error) {
    fail(error);
    throw;
  }
}

}  // namespace

Cell read_cell(const std::string& path) { return read_json_file(path, "a cell", cell_of); }

ReadCells read_cells(const std::string& path) {
  ReadCells all;
  if (!std::filesystem::is_directory(path)) {
    return read_json_file(path, "a board", [&all](const Json& json) {
      for (const Json& each : output::member(json, "cells")) all.cells.push_back(cell_of(each));
      return all;
    });
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    try {
      all.cells.push_back(read_cell(file));
    } catch (const FormatError& error) {
      all.damaged.push_back({file, error.what()});
    }
  }
  return all;
}

}  // namespace cmt::replay
