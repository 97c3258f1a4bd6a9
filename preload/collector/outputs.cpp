// Opens the sinks of a trace's files and passes events on to them. The header of all files is made here.

#include "preload/collector/outputs.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <utility>

#include "libcmt/text/format.h"

namespace cmt::collector {
namespace {

/// The level of zstd. Compared with level 3, encoding takes a twelfth less time. Traces of a compiler are 4 % larger,
/// others 0 to 1 %.
constexpr int level = 1;

/// The value of the key `origin` (format-spec/text.md).
const char* origin_of(const StartFacts& facts) {
  return facts.forked == 0 ? "start" : facts.forked == 1 ? "fork" : "attach";
}

/// How many processors the program may use.
int processors_of(const StartFacts& facts) {
  cpu_set_t set;
  if (::sched_getaffinity(static_cast<pid_t>(facts.process), sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

Header header_of(const StartFacts& facts, bool has_times) {
  Header header;
  header.has_header = header.has_addresses = true;
  header.has_times = has_times;
  header.has_stacks = facts.stacks_at != 0;
  header.metadata = {{"program", facts.program},
                     {"command", facts.command},
                     {"pid", std::to_string(facts.process)},
                     {"start", text::start_text(facts.start_wall)},
                     {"start_monotonic_ns", std::to_string(facts.start_ns)},
                     {"recorder", "libcmttrace " CMT_VERSION},
                     {"origin", origin_of(facts)},
                     {"allocator", facts.allocator.empty() ? facts.program : facts.allocator},
                     {"page_size", std::to_string(::sysconf(_SC_PAGESIZE))}};
  if (has_times) header.metadata.emplace_back("processors", std::to_string(processors_of(facts)));
  if (facts.sample_bytes != 0) header.metadata.emplace_back("sampled", std::to_string(facts.sample_bytes));
  if (facts.touched_min != 0) header.metadata.emplace_back("touched_min", std::to_string(facts.touched_min));
  return header;
}

}  // namespace

Outputs::Outputs(const StartFacts& facts, const std::vector<std::string>& paths, const std::vector<int>& descriptors,
                 bool has_times, const LiveBlockSource& live_blocks, FlightLimits keep)
    : has_times_(has_times), times_(facts.start_stamp, facts.start_ns) {
  assert(descriptors.size() <= paths.size());
  const Header header = header_of(facts, has_times);
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const WriteOptions options{.format = paths[i].ends_with(".cmt") ? Format::cmt : Format::text, .level = level};
    auto output = std::make_unique<Output>(descriptors[i]);
    std::unique_ptr<Sink> sink;
    if (keep.is_set()) {  // there is one path: the program has checked that
      const std::string folder = std::filesystem::path(paths[i]).parent_path();
      auto keeping = std::make_unique<FlightSink>(*output, header, live_blocks, folder, keep);
      kept_ = keeping.get();
      sink = std::move(keeping);
    } else {
      sink = make_sink(*output, header, options, live_blocks);
    }
    files_.push_back({descriptors[i], paths[i], std::move(output), std::move(sink)});
  }
}

std::size_t Outputs::write_events(const EventBatch& batch) {
  if (!resume_at_.empty()) undo_checkpoint();
  tally_.count(batch);
  std::size_t room = std::numeric_limits<std::size_t>::max();
  for_each_file([&](File& file) {
    file.sink->add_batch(batch);
    room = std::min(room, file.sink->room());
  });
  return room;
}

void Outputs::flush() {
  if (resume_at_.empty()) for_each_file([](File& file) { file.sink->flush(); });
}

void Outputs::use_threads(bool wanted) {
  for_each_file([wanted](File& file) { file.sink->use_thread(wanted); });
}

void Outputs::begin_checkpoint() {
  use_threads(false);  // the copy would have none
  if (!resume_at_.empty()) undo_checkpoint();
  for (const File& file : files_) resume_at_.push_back(::lseek(file.fd, 0, SEEK_CUR));
}

// The copy shares the descriptors, so its writes have moved their offsets.
void Outputs::undo_checkpoint() {
  assert(resume_at_.size() == files_.size());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (::ftruncate(files_[i].fd, resume_at_[i]) != 0 || ::lseek(files_[i].fd, resume_at_[i], SEEK_SET) < 0) {
      throw OutputError(files_[i].path, errno);
    }
  }
  resume_at_.clear();
}

void Outputs::finish(const Repairs& repairs, bool truncated, std::uint64_t samples_lost,
                     std::vector<RunStretch> stretches) {
  Totals totals = tally_.totals();
  totals.repairs = repairs;
  totals.truncated = truncated;
  totals.samples_lost = samples_lost;
  totals.stretches = std::move(stretches);
  for_each_file([&](File& file) { file.sink->finish(totals); });
}

std::vector<std::uint64_t> Outputs::lengths() const {
  std::vector<std::uint64_t> lengths;
  for (const File& file : files_) lengths.push_back(static_cast<std::uint64_t>(::lseek(file.fd, 0, SEEK_CUR)));
  return lengths;
}

std::uint64_t Outputs::bytes() const {
  std::uint64_t sum = 0;
  for (const File& file : files_) sum += file.output->offset();
  return sum;
}

}  // namespace cmt::collector
