// Writes the sums of stacks as a profile, and numbers and compresses files.
#include "preload/collector/profile/profile_files.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "libcmt/call_of_init.h"
#include "libcmt/pprof/profile_message.h"
#include "preload/collector/drain/ring_memory.h"
#include "preload/collector/outputs.h"

namespace cmt::collector {
namespace {

using pprof::ProfileMessage;

constexpr std::size_t profile_stacks_max = 16384;

/// The locations: each frame's number plus 1, so that frame 0 has one, and two without a place.
std::uint64_t location_of(FrameId frame) { return frame + std::uint64_t{1}; }

std::vector<std::uint64_t> locations_of(const StackTable& stacks, StackId stack) {
  if (stack == 0 || stack == joined_stacks) return {location_of(stacks.frame_count()) + (stack == 0 ? 0 : 1)};
  std::vector<std::uint64_t> locations;
  for (StackId at = stack; at != 0 && locations.size() < pprof::locations_max; at = stacks.node(at).parent) {
    const StackNode& node = stacks.node(at);
    if (node.parent == 0 || !is_call_of_init(stacks, node.frame)) locations.push_back(location_of(node.frame));
  }
  if (locations.size() == pprof::locations_max) locations.push_back(location_of(0));
  return locations;
}

/// Narrows a module to its first executable segment, by which those who symbolize find addresses in the file. Returns
/// that segment's offset in the file. If the file is not there, the module stays as it is.
std::uint64_t narrow_to_code(Module& module, const std::string& root) {
  std::ifstream file(root + module.path, std::ios::binary);
  const auto read = [&](auto& to) { return !file.read(reinterpret_cast<char*>(&to), sizeof to).fail(); };
  Elf64_Ehdr head{};
  if (!read(head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  file.seekg(static_cast<std::streamoff>(head.e_phoff));
  Elf64_Phdr part{};
  for (int left = head.e_phnum; left > 0 && read(part); --left) {
    const std::uint64_t skew = part.p_offset % 4096, begin = module.bias + part.p_vaddr - skew;
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    if (begin < module.begin || begin >= module.end) return 0;  // another file has the name now
    module.begin = begin;
    module.end = begin + skew + part.p_memsz;
    return part.p_offset - skew;
  }
  return 0;
}

void put_tables(ProfileMessage& message, const StackTable& stacks, const StartFacts& facts) {
  const auto put_named = [&](FrameId id, std::string_view name) {
    const FrameName line{.function = name, .file = {}};
    message.put_location(location_of(id), {}, {&line, 1});
  };
  put_named(0, "[cut]");
  for (FrameId id = 1; id < stacks.frame_count(); ++id) {
    const Frame& frame = stacks.frame(id);
    message.put_location(location_of(id), ProfileMessage::Place{frame.module, frame.instruction()}, stacks.names(id));
  }
  put_named(stacks.frame_count(), "[unknown]");
  put_named(stacks.frame_count() + 1, "[other]");
  const std::string root = facts.is_outside ? "/proc/" + std::to_string(facts.process) + "/root" : "";
  for (const bool wanted : {true, false}) {
    for (ModuleId id = 1; id < stacks.module_count(); ++id) {
      Module module = stacks.module(id);
      if ((pprof::base_name(module.path) == pprof::base_name(facts.program)) != wanted) continue;
      const bool has_names = module.is_interpreter();
      const std::uint64_t offset = narrow_to_code(module, root);
      message.put_mapping(id, module, {has_names, has_names, has_names, false}, offset);
    }
  }
}

/// Writes a compressed file of another name, which is renamed to `path` when it is whole.
void write_compressed(const std::string& path, const ProfileFiles::Content& content) {
  const std::string part = path + ".part";
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw OutputError(path, errno);
  const gzFile file = ::gzdopen(fd, "wb");
  int error = 0;
  const auto check = [&](bool is_done) {
    if (!is_done && error == 0) error = errno != 0 ? errno : EIO;
    errno = 0;
  };
  check(file != nullptr);
  content([&](std::string_view bytes) {
    const auto size = static_cast<unsigned>(bytes.size());
    if (error == 0 && size != 0) check(::gzwrite(file, bytes.data(), size) == static_cast<int>(size));
  });
  check(file != nullptr ? ::gzclose(file) == Z_OK : ::close(fd) == 0);
  if (error == 0) check(::rename(part.c_str(), path.c_str()) == 0);
  if (error == 0) return;
  ::unlink(part.c_str());
  throw OutputError(path, error);
}

}  // namespace

void write_profile(const StackProfile& profile, const StackTable& stacks, const StartFacts& facts,
                   std::uint64_t samples_lost, std::uint64_t ns, std::uint64_t events_lost,
                   const std::function<void(std::string_view)>& write) {
  ProfileMessage message(write);
  for (const char* const type : {"alloc", "inuse"}) {
    message.put_sample_type(type + std::string("_objects"), "count");
    message.put_sample_type(type + std::string("_space"), "bytes");
  }
  message.put_period("space", "bytes", static_cast<std::int64_t>(std::max<std::uint64_t>(profile.interval(), 1)));
  message.put_default_type("inuse_space");
  std::vector<StackProfile::Entry> entries = profile.entries();
  const std::size_t joined = join_smallest(entries, profile_stacks_max);
  std::array<double, 4> rests{};  // what rounding has left of each sum, for the next one
  for (const StackProfile::Entry& entry : entries) {
    std::array<std::uint64_t, 4> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double rounded = std::max(std::floor(entry.sums[i] + rests[i] + 0.5), 0.0);
      rests[i] += entry.sums[i] - rounded;
      values[i] = static_cast<std::uint64_t>(rounded);
    }
    message.put_sample(locations_of(stacks, entry.stack), values);
  }
  put_tables(message, stacks, facts);
  const std::uint64_t ago_ns = clock_ns() - facts.start_ns - ns;  // facts.start_wall has whole seconds only
  message.put_time(static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME) - ago_ns));
  message.put_duration(ns);
  const auto comment = [&](const char* name, std::uint64_t value) {
    message.put_comment(name + std::to_string(value));
  };
  comment("sampling_interval=", profile.interval());
  if (facts.sample_bytes != 0) {
    comment("sampling_interval_at_start=", facts.sample_bytes);
    comment("sampling_interval_raised=", profile.raises());
    comment("unseen_below=", static_cast<std::uint64_t>(2.9957 * static_cast<double>(profile.interval())));  // -ln 0.05
    comment("samples_made=", profile.blocks_made());
    comment("samples_live=", profile.blocks_live());
    comment("samples_lost=", samples_lost);
  }
  comment("events_dropped=", events_lost);
  comment("stacks_joined=", joined);
  message.finish();
}

ProfileFiles::ProfileFiles(std::string path, std::uint64_t most) : begin_(std::move(path)), most_(most) {
  constexpr std::string_view usual = ".pb.gz";
  ending_ = begin_.ends_with(usual) ? usual : std::filesystem::path(begin_).extension().string();
  begin_.resize(begin_.size() - ending_.size());
  const std::filesystem::path begin = begin_ + ".";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(begin.parent_path(), error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(begin.filename().string()) || !name.ends_with(ending_)) continue;
    name = name.substr(begin.filename().string().size());
    name.resize(name.size() - std::min(ending_.size(), name.size()));
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    if (name.size() >= 4 && std::from_chars(name.data(), end, number).ptr == end) numbers_.push_back(number);
  }
  std::sort(numbers_.begin(), numbers_.end());
}

std::string ProfileFiles::path(std::uint64_t number, int digits) const {
  char text[32];
  std::snprintf(text, sizeof text, ".%0*llu", digits, static_cast<unsigned long long>(number));
  return begin_ + text + ending_;
}

void ProfileFiles::write_numbered(const Content& content) {
  const std::uint64_t number = numbers_.empty() ? 1 : numbers_.back() + 1;
  write_compressed(path(number, 4), content);
  numbers_.push_back(number);
  for (; numbers_.size() > most_; numbers_.pop_front()) ::unlink(path(numbers_.front(), 4).c_str());
}

void ProfileFiles::write_last(const Content& content) const {
  std::string name = begin_ + ending_;
  for (std::uint64_t number = 2; ::access(name.c_str(), F_OK) == 0; ++number) name = path(number, 1);
  write_compressed(name, content);
}

}  // namespace cmt::collector
