// Recovers a trace whose program and collector ended together (`cmttrace --recover`). The trace's file is read again up
// to the last saved state, and the rings' records follow. The hard part is to continue with the same tags, stacks and
// open reallocs.

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cmt/error.h"
#include "cmt/reader.h"
#include "preload/collector/collector.h"
#include "preload/collector/order/order.h"
#include "preload/collector/outputs.h"

namespace cmt::collector {
namespace {

int open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  return fd;
}

std::string recovered_name(std::filesystem::path path) {
  return path.replace_extension(".recovered" + path.extension().string());
}

/// Returns an unnamed copy of the first `bytes` of a file.
int copy_first_bytes(const std::string& path, std::uint64_t bytes) {
  const int from = open_file(path, O_RDONLY);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> copy(std::tmpfile(), std::fclose);
  if (!copy) throw std::system_error(errno, std::generic_category(), "temporary file");
  const int fd = ::dup(::fileno(copy.get()));
  while (bytes != 0) {
    const ssize_t copied = ::sendfile(fd, from, nullptr, bytes);
    if (copied < 0) throw std::system_error(errno, std::generic_category(), "temporary file");
    if (copied == 0) throw FormatError(path, "is shorter than its rings say");
    bytes -= static_cast<std::uint64_t>(copied);
  }
  ::close(from);
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

class Recovery {
 public:
  Recovery(RingMemory& memory, const std::vector<std::string>& paths, const std::vector<int>& descriptors)
      : memory_(memory),
        control_(memory.control()),
        facts_(memory.start_facts()),
        stacks_(memory.stack_share(), facts_.has_stacks_of_frees,
                [this](std::uint64_t stamp) { return outputs_.time_of(stamp); }),
        order_(
            earlier_blocks(facts_), [this](EventBatch& batch) { return write_events(batch); },
            has_stacks() ? &stacks_ : nullptr, facts_.touched_min, &control_),
        outputs_(facts_, paths, descriptors, control_.times != 0, order_.live_blocks()) {
    outputs_.calibrate(control_.clock_stamp, control_.clock_ns);
    if (has_stacks()) outputs_.use_stacks(stacks_.table());
  }

  Recovered run() {
    if (control_.saves != 0) restore_trace();
    const std::uint64_t before = events_;
    are_from_rings_ = true;
    read_rings();
    stacks_.note_unloaded();
    Repairs repairs = order_.repairs();
    repairs += repairs_;
    outputs_.finish(repairs, true, control_.samples_lost);
    return {.events = events_,
            .from_rings = events_ - before,
            .stacks_unknown = stacks_.unknown_events(),
            .rings_missing = rings_missing_,
            .paths = {}};
  }

 private:
  bool has_stacks() const { return facts_.stacks_at != 0; }

  void restore_trace() {
    const std::uint64_t bytes = control_.saved_bytes[control_.saves & 1][0];
    ReadOptions options;
    options.stacks = has_stacks();
    Reader reader(copy_first_bytes(facts_.paths[0], bytes), facts_.paths[0], options);
    reader.accept_samples();
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      stacks_.restore(reader.stacks());
      for (Event event : events) {
        event.stack = stacks_.restored(event.stack);
        order_.restore_event(event);
      }
    }
    stacks_.restore(reader.stacks());
    order_.merge_all();
    repairs_ = reader.repairs();
  }

  void read_rings() {
    Packer records;
    for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
      const Ring& ring = memory_.ring(i);
      const Saved saved = control_.saves != 0 ? memory_.saved(ring) : Saved{};
      const std::uint64_t slots = memory_.slots_of(ring).count;
      if (slots == 0 && ring.slots != 0) ++rings_missing_;
      const std::uint64_t end = saved.position + slots;
      for (std::uint64_t position = saved.position, read = 1; read != 0 && position < end; position += read) {
        read = memory_.read(ring, position, end - position, records);
        if (read == 0) read = memory_.skip_unpublished(ring, position, end, records);
        assert(read <= end - position);
      }
      const StackId last_stack = control_.saves != 0 ? ring.saved_stack[control_.saves & 1] : 0;
      order_.resume_ring(i, {saved, stacks_.restored(last_stack)});
      order_.append_records(i, records.finish());
    }
    order_.merge_all();
  }

  /// The sink of order_.
  std::size_t write_events(EventBatch& batch) {
    if (are_from_rings_) {
      outputs_.convert_stamps(batch);
    } else {
      // The collector has read both clocks more often, so by its line an event may have come later.
      for (const BlockEvent& event : batch.events()) {
        if (event.time_ns != unknown) outputs_.go_on_from(event.time_ns);
      }
    }
    events_ += batch.size();
    return outputs_.write_events(batch);
  }

  RingMemory& memory_;
  Control& control_;
  const StartFacts& facts_;
  bool are_from_rings_ = false;  // events have stamps for times
  RingStacks stacks_;
  EventOrder order_;
  Outputs outputs_;  // reads the live blocks of order_
  Repairs repairs_;
  std::uint64_t events_ = 0;
  std::uint32_t rings_missing_ = 0;
};

}  // namespace

Recovered recover(const std::string& rings, std::vector<std::string> outputs) {
  RingMemory memory(open_file(rings, O_RDONLY), RingMemory::Access::private_copy, rings);
  const StartFacts& facts = memory.start_facts();
  if (facts.outputs == 0) throw FormatError(rings, "holds no rings");
  if (outputs.empty()) {
    for (std::uint32_t i = 0; i < facts.outputs; ++i) outputs.push_back(recovered_name(facts.paths[i]));
  }
  std::vector<int> descriptors;
  try {
    for (const std::string& path : outputs) descriptors.push_back(open_file(path, O_RDWR | O_CREAT | O_EXCL));
    Recovered recovered = Recovery(memory, outputs, descriptors).run();
    recovered.paths = std::move(outputs);
    return recovered;
  } catch (...) {
    for (std::size_t i = 0; i < descriptors.size(); ++i) ::unlink(outputs[i].c_str());
    throw;
  }
}

}  // namespace cmt::collector
