// Chooses what to watch, looks at it, and keeps the last figures. The hard part is the end: after a kill the kernel
// gives the program's memory back at once. Figures from then on are not those that led to the kill.

#include "preload/collector/memory_group/memory_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace cmt::collector {
namespace {

/// For so long after a kill the figures before it are kept if the process cannot be seen.
constexpr std::uint64_t hold_ns = 2'000'000'000;

constexpr std::size_t looks_max = 4096;  // 40 s at least

/// "some" threads waited for memory for 150 ms of 2 s. A window that is no multiple of 2 s needs CAP_SYS_RESOURCE. The
/// kernel takes the last byte that is written for the end of a line.
constexpr char pressure_trigger[] = "some 150000 2000000";

std::string_view word_of(MemorySource::Kind kind) {
  return kind == MemorySource::Kind::machine ? "machine" : kind == MemorySource::Kind::process ? "process" : "group";
}

int open_pressure(const std::string& proc) {
  const int fd = ::open((proc + "/pressure/memory").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && ::write(fd, pressure_trigger, sizeof pressure_trigger) < 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

MemoryWatch::MemoryWatch(KeepAt at, std::vector<MemorySource> groups, std::vector<MemorySource> of_recorder,
                         const std::string& proc, std::uint32_t process, std::uint64_t start_ns)
    : is_share_(at.percent != 0),
      process_(proc + "/" + std::to_string(process)),
      sees_process_(find_living_thread(process_)),
      start_ns_(start_ns),
      sources_(std::move(groups)),
      of_recorder_(std::move(of_recorder)),
      mark_(at) {
  if (!is_share_) {  // a size is one of the program's own group
    if (sources_.empty()) sources_.emplace_back(MemorySource::Kind::process, process_);
    sources_.erase(sources_.begin() + 1, sources_.end());
  } else if (!read_fullest()) {
    sources_.emplace_back(MemorySource::Kind::machine, proc);
    pressure_fd_ = open_pressure(proc);
  }
  if (const auto own = sources_.front().read()) kills_ = kills_before_ = own->kills;
}

MemoryWatch::~MemoryWatch() {
  if (pressure_fd_ >= 0) ::close(pressure_fd_);
}

std::string_view MemoryWatch::watched() const { return word_of(sources_.back().kind()); }

bool MemoryWatch::wait(int finished_fd) const {
  pollfd fds[] = {{finished_fd, POLLIN, 0}, {pressure_fd_, POLLPRI, 0}};
  ::poll(fds, std::size(fds), wait_ms_);
  return (fds[1].revents & POLLPRI) != 0;
}

/// Returns the source with the largest share of its limit, since it is at the limit first.
std::optional<std::pair<const MemorySource*, MemoryFigures>> MemoryWatch::read_fullest() const {
  std::optional<std::pair<const MemorySource*, MemoryFigures>> fullest;
  double share_max = -1;
  for (const MemorySource& source : sources_) {
    const auto memory = source.read();
    if (!memory || (is_share_ && !memory->has_limit())) continue;
    const double share = static_cast<double>(memory->used) / static_cast<double>(memory->limit + 1);
    if (share > share_max) fullest.emplace(&source, *memory);
    share_max = std::max(share, share_max);
  }
  return fullest;
}

/// A recorder that has attached can be in other groups than the process.
bool MemoryWatch::has_recorder(const MemorySource& source) const {
  return source.kind() == MemorySource::Kind::machine ||
         std::ranges::any_of(of_recorder_, [&](const MemorySource& group) { return group.path() == source.path(); });
}

bool MemoryWatch::look(std::uint64_t now_ns, bool is_pressed) {
  const auto fullest = read_fullest();
  const auto own = sources_.front().read();  // version 1 counts a kill in the group of the killed process only
  if (!fullest || !own) return false;
  const auto& [source, memory] = *fullest;
  if (own->kills > kills_) killed_ns_ = now_ns;
  kills_ = own->kills;
  wait_ms_ = mark_.wait_ms(memory);
  // The figures were read before. If the program lives on now, they are of its life, and the kill was another
  // process's.
  if (killed_ns_ != 0 && (sees_process_ ? !find_living_thread(process_) : now_ns < killed_ns_ + hold_ns)) return false;
  const auto recorder = MemorySource(MemorySource::Kind::process, "/proc/self").read();
  const bool is_counted = recorder && has_recorder(*source);
  const std::scoped_lock lock(mutex_);
  looks_.push_back({now_ns, word_of(source->kind()), memory, is_counted ? recorder->anonymous : 0});
  if (looks_.size() > looks_max) looks_.pop_front();
  return mark_.is_due(memory, now_ns, is_pressed);
}

void MemoryWatch::note_written(std::uint64_t now_ns, std::uint64_t took_ns) {
  const std::scoped_lock lock(mutex_);
  mark_.note_written(now_ns, took_ns);
}

std::string MemoryWatch::text(std::uint64_t until_ns) const {
  const std::scoped_lock lock(mutex_);
  const auto after = std::ranges::upper_bound(looks_, until_ns, {}, &Look::ns);
  if (after == looks_.begin()) return "";
  const Look& look = *std::prev(after);
  std::string text(look.kind);
  const auto add = [&](const char* name, std::uint64_t value, const char* unit = "") {
    text += std::string(" ") + name + "=" + std::to_string(value) + unit;
  };
  add("used", look.memory.used);
  add("anonymous", look.memory.anonymous);
  if (look.memory.has_limit()) add("limit", look.memory.limit);
  if (look.memory.swapped != 0) add("swapped", look.memory.swapped);
  if (look.recorder != 0) add("recorder", look.recorder);
  // The kill may be later than the last look, or the group cannot be seen any more.
  const auto own = sources_.front().read();
  const std::uint64_t kills = own ? own->kills : kills_.load();
  if (kills > kills_before_) add("kills", kills - kills_before_);
  add("at", look.ns - start_ns_, "ns");
  return text;
}

}  // namespace cmt::collector
