#include "preload/collector/recovery.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "cmt/error.h"
#include "cmt/reader.h"
#include "preload/collector/ring_memory.h"
#include "preload/collector/order.h"
#include "preload/collector/outputs.h"
#include "preload/collector/ticks.h"

namespace cmt::collector {
namespace {

int open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  return fd;
}

std::string recovered_name(const std::string& path) {
  const std::size_t slash = path.rfind('/') + 1, dot = path.rfind('.');
  const std::size_t place = dot == std::string::npos || dot <= slash ? path.size() : dot;
  return path.substr(0, place) + ".recovered" + path.substr(place);
}

/// The first `bytes` of a file, as one without a name.
int first_bytes(const std::string& path, std::uint64_t bytes) {
  const int from = open_file(path, O_RDONLY);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> copy(std::tmpfile(), std::fclose);
  if (!copy) throw std::system_error(errno, std::generic_category(), "a file for what is read");
  std::vector<char> chunk(1 << 20);
  while (bytes != 0) {
    const ssize_t got = ::read(from, chunk.data(), std::min<std::uint64_t>(chunk.size(), bytes));
    if (got <= 0) break;
    if (::write(::fileno(copy.get()), chunk.data(), static_cast<std::size_t>(got)) != got) {
      throw std::system_error(errno, std::generic_category(), "a file for what is read");
    }
    bytes -= static_cast<std::uint64_t>(got);
  }
  ::close(from);
  if (bytes != 0) throw FormatError(path, "is shorter than its rings say");
  const int fd = ::dup(::fileno(copy.get()));
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

class Recovery {
 public:
  Recovery(Memory& memory, const std::vector<std::string>& paths, const std::vector<int>& descriptors)
      : memory_(memory),
        control_(memory.control()),
        outputs_(control_, paths, descriptors, has_times_, order_),
        order_(control_.forked != 0 ? 1'000'000 : 1000, [this](std::span<BookedEvent> events) { return add(events); }),
        ticks_(control_.start_stamp, control_.start_ns) {
    ticks_.tell(control_.clock_stamp, control_.clock_ns);
  }

  Recovered run() {
    if (control_.saves != 0) copy_saved(first_bytes(control_.paths[0], control_.saved_bytes[control_.saves & 1][0]));
    const std::uint64_t before = events_;
    are_stamps_ = true;
    read_rings();
    Repairs repairs = order_.repairs();
    repairs += repairs_;
    outputs_.finish(repairs, true);
    return {.events = events_, .from_rings = events_ - before, .rings_missing = rings_missing_, .paths = {}};
  }

 private:
  void copy_saved(int fd) {
    Reader reader(fd, control_.paths[0]);
    has_times_ = reader.header().has_times;
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const Event& event : events) order_.know(event);
    }
    order_.finish();
    repairs_ = reader.repairs();
  }

  void read_rings() {
    Packer records;
    for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
      const Ring& ring = memory_.ring(i);
      const Saved saved = control_.saves != 0 ? memory_.saved(ring) : Saved{};
      if (!memory_.has_places(ring)) ++rings_missing_;
      const std::uint64_t end = saved.position + ring.slots;
      for (std::uint64_t at = saved.position, got = 1; got != 0 && at < end; at += got) {
        got = memory_.read(ring, at, end - at, records);
        if (got == 0) got = memory_.skip(ring, at, end, records);
      }
      order_.resume(i, saved);
      order_.append(i, records.take());
    }
    order_.finish();
  }

  std::size_t add(std::span<BookedEvent> events) {
    if (are_stamps_) {
      for (auto& [event, old] : events) event.time_ns = has_times_ ? ticks_.time_of(event.time_ns) : unknown;
    }
    events_ += events.size();
    return outputs_.add(events);
  }

  Memory& memory_;
  Control& control_;
  bool has_times_ = memory_.control().times != 0;
  bool are_stamps_ = false;  // for times
  Outputs outputs_;
  Order order_;
  Ticks ticks_;
  Repairs repairs_;
  std::uint64_t events_ = 0;
  std::uint32_t rings_missing_ = 0;
};

/// New files, which go away again where nothing came of them.
class Files {
 public:
  explicit Files(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      descriptors.push_back(open_file(path, O_RDWR | O_CREAT | O_EXCL));
      created_.push_back(path);
    }
  }
  ~Files() {
    for (const std::string& path : created_) ::unlink(path.c_str());
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  void keep() { created_.clear(); }

  std::vector<int> descriptors;

 private:
  std::vector<std::string> created_;
};

}  // namespace

Recovered recover(const std::string& rings, std::vector<std::string> outputs) {
  Memory memory(open_file(rings, O_RDONLY), Memory::Use::alone, rings);
  Control& control = memory.control();
  if (outputs.empty()) {
    for (std::uint32_t i = 0; i < control.outputs; ++i) outputs.push_back(recovered_name(control.paths[i]));
  }
  Files files(outputs);
  Recovered recovered = Recovery(memory, outputs, files.descriptors).run();
  files.keep();
  recovered.paths = std::move(outputs);
  return recovered;
}

}  // namespace cmt::collector
