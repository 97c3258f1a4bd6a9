// cmtwatch import: makes a recording of copies of smaps files, a moment for each.

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "cmt/error.h"
#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/recording.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/smaps.h"

namespace cmt::watch {

namespace {

namespace fs = std::filesystem;
using process::Mapping;

struct SmapsFile {
  std::string path;
  std::int64_t wall_ns = 0;
};

std::int64_t written_ns(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) throw std::system_error(errno, std::generic_category(), path);
  return file.st_mtim.tv_sec * std::int64_t{1'000'000'000} + file.st_mtim.tv_nsec;
}

std::vector<SmapsFile> files_in_order(const command::CommandLine& line) {
  const std::int64_t interval_ns = line.has("interval") ? parse_time(line, "interval") : 0;
  std::vector<SmapsFile> files;
  for (const std::string& path : line.files()) {
    files.push_back({path, written_ns(path)});
  }
  if (interval_ns == 0) {
    std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.wall_ns < b.wall_ns; });
    return files;
  }
  for (std::size_t i = 1; i < files.size(); ++i) files[i].wall_ns = files[i - 1].wall_ns + interval_ns;
  return files;
}

/// Sorts mappings by address, as the writer needs them: the file may have been edited.
std::vector<Mapping> read_mappings(const std::string& path) {
  const std::string text = process::read_file(path);
  std::vector<Mapping> mappings = process::parse_smaps(text, path);
  if (mappings.empty()) throw FormatError(path, "no mappings");
  if (text.back() != '\n') throw FormatError(path, "breaks off in the middle of a line");
  if (text.find("\nRss:") == text.npos) throw FormatError(path + ":1", "no figures of a mapping: a maps file?");
  std::stable_sort(mappings.begin(), mappings.end(),
                   [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  return mappings;
}

/// Whether a file is a copy of smaps_rollup. Its one mapping has the sums of all mappings. Its range goes from the
/// first to the last of them, and contains much that is not the process's.
bool is_rollup(const std::vector<Mapping>& mappings, const std::string& path) {
  const bool has_sums =
      std::any_of(mappings.begin(), mappings.end(), [](const Mapping& each) { return each.name == "[rollup]"; });
  if (has_sums && mappings.size() > 1) throw FormatError(path, "a copy of smaps_rollup, with further mappings");
  return has_sums;
}

ProcessSample sample_of(const std::vector<Mapping>& mappings, bool has_sums_only) {
  ProcessSample sample{.resident_bytes = 0};
  if (!has_sums_only) {
    sample.size_bytes = 0;
    sample.mappings_readable = true;
  }
  for (const Mapping& mapping : mappings) {
    if (!has_sums_only) *sample.size_bytes += mapping.end - mapping.begin;
    *sample.resident_bytes += mapping.resident_bytes;
    add_to_totals(mapping, sample);
  }
  return sample;
}

void write_about(database::Database& database, std::int64_t wall_ns, bool has_sums_only) {
  database::Statement set(database, "insert into about values (?, ?)");
  set.bind("recorder").bind("cmtwatch " CMT_VERSION).run();
  set.bind("start_wall_ns").bind(wall_ns).run();
  set.bind("measure").bind(has_sums_only ? "totals" : "mappings").run();
}

void write_recording(const std::string& path, const std::vector<SmapsFile>& files, const process::Stat& stat,
                     const std::string& command) {
  database::Database database(path, database::Database::Mode::write);
  prepare_recording(database, path);
  RecordingWriter writer(database);
  std::int64_t process = 0;
  KnownMappings known;
  bool has_sums_only = false;
  for (const SmapsFile& file : files) {
    const std::vector<Mapping> mappings = read_mappings(file.path);
    const bool is_first = process == 0, is_sum = is_rollup(mappings, file.path);
    if (!is_first && is_sum != has_sums_only)
      throw FormatError(file.path, std::string("a copy of ") + (is_sum ? "smaps_rollup" : "smaps") + ", unlike " +
                                       files.front().path);
    has_sums_only = is_sum;
    if (is_first) write_about(database, file.wall_ns, has_sums_only);
    const std::int64_t begin_ns = file.wall_ns - files.front().wall_ns;
    writer.begin_tick(begin_ns, file.wall_ns);
    if (is_first) process = writer.add_process(stat, command);
    if (!has_sums_only) {
      RecordingWriter::Mappings now(writer, process, known);
      for (const Mapping& mapping : mappings) now.add(mapping);
      known = now.finish();
    }
    writer.write_sample(process, sample_of(mappings, has_sums_only));
    writer.end_tick(begin_ns, 0);
  }
  close_recording(database);
}

int import_smaps(const command::CommandLine& line) {
  const std::string path = line.value("output", "");
  if (path.empty()) throw command::UsageError("-o FILE is missing");
  if (line.files().empty()) throw command::UsageError("expected smaps files");
  const process::Stat stat{.pid = line.has("pid") ? parse_pid(line.value("pid", "")) : 0,
                           .name = line.value("name", "smaps")};
  const std::vector<SmapsFile> files = files_in_order(line);
  if (fs::exists(path)) throw std::runtime_error(path + ": is there already");
  try {
    write_recording(path, files, stat, line.value("name", ""));
  } catch (...) {  // no recording of only some of the files remains
    for (const char* const part : {"", "-wal", "-shm"}) fs::remove(path + part);
    throw;
  }
  return 0;
}

}  // namespace

Subcommand import_subcommand() {
  return {.name = "import",
          .summary = "make a recording from smaps files",
          .help = R"(Usage: cmtwatch import [OPTION]... -o FILE SMAPS-FILE...

Makes a recording from copies of a process's /proc/PID/smaps. Each copy becomes
a moment, in the order in which the files were last written. Copies of its
smaps_rollup are read too: they have the sums of all mappings.

  -o, --output=FILE  the recording, which must not exist yet
  --interval=TIME    take the files in the order given, TIME apart
  --pid=PID          the process's number. Default: 0
  --name=NAME        the process's name. Default: smaps
)",
          .run = import_smaps};
}

}  // namespace cmt::watch
