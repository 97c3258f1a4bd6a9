// collector_speed FILE [ROUNDS [STAGE]]: prints the cost of the collector's encoder for the events of a trace. The cost
// is in ns of processor time an event, the median of ROUNDS rounds (5). STAGE is order, encode or all, and measures
// that stage alone, for a profiler.
//
// FILE is a .cmt with addresses. Its events become records in a ring for each thread, as the tracer would have made
// them, and are packed by passes of 8,192 events. Stamps are of two sorts. With `full` each event has its own. With
// `sparse` an event has its own only if another thread touched its memory last, and otherwise that of the previous
// pass. A trace with call stacks is measured with and without them (`+stacks`): the difference is the collector's cost
// of stacks, without reading the rings.
//
//   pack      records to packed words (the drainer's work, without reading the rings)
//   order     packed words to events in order, which are then dropped
//
//   encode    order, and the core and address streams, which are kept
//
//   compress  these streams, zstd -1
//   all       order and outputs, as the collector does it, to a file in memory
//
// The last columns are the bytes of that file an event, and its checksum: two builds that print the same have written
// the same bytes.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/format/addresses.h"
#include "libcmt/format/core.h"
#include "libcmt/format/zstd.h"
#include "preload/collector/order/order.h"
#include "preload/collector/outputs.h"
#include "preload/collector/ring_stacks.h"

namespace {

using namespace cmt::collector;
using cmt::Event;

constexpr std::size_t pass_events = 8192, events_max = 4'000'000, tags_of_reserve = 1000;
constexpr std::uint32_t block_events = 1 << 18;

/// The slots that one pass of the drainer reads.
struct Pass {
  std::unordered_map<std::uint32_t, std::vector<Slot>> slots;  // by ring
  std::uint64_t cut = 0;
};

/// Makes records of call stacks, as differences from a ring's last one.
class StackRecorder {
 public:
  void record(const cmt::StackTable& stacks, cmt::StackId stack, std::uint32_t ring, std::vector<Slot>& slots) {
    Last& last = last_[ring];
    if (stack == last.nodes.back()) return;
    std::vector<cmt::StackId> nodes;
    for (cmt::StackId at = stack; at != 0; at = stacks.node(at).parent) nodes.push_back(at);
    nodes.push_back(0);
    std::reverse(nodes.begin(), nodes.end());
    std::size_t kept = 1;
    while (kept < std::min(nodes.size(), last.nodes.size()) && nodes[kept] == last.nodes[kept]) ++kept;
    StackRecord record{static_cast<std::uint32_t>(kept - 1), 0, ++last.number % stack_numbers, false, false};
    std::vector<std::uint32_t> frames;
    for (std::size_t i = kept; i < nodes.size(); ++i) {
      const cmt::FrameId frame = stacks.node(nodes[i]).frame;
      if (frame != 0) frames.push_back(frame);
      record.is_cut = record.is_cut || frame == 0;
    }
    record.added = static_cast<std::uint32_t>(frames.size());
    frames.resize(frames.size() + stack_frames_more);
    slots.push_back(slot_of_stack(&record, frames.data()));
    for (std::size_t at = stack_frames_first; at < record.added; at += stack_frames_more)
      slots.push_back(slot_of_frames(&frames[at]));
    last.nodes = std::move(nodes);
  }

 private:
  struct Last {
    std::vector<cmt::StackId> nodes{0};
    std::uint32_t number = 0;
  };
  std::unordered_map<std::uint32_t, Last> last_;  // by ring
};

/// Returns the memory that the program would share: each frame of the table has its number as its index.
std::unique_ptr<StackShare> share_of(const cmt::StackTable& stacks) {
  auto share = std::make_unique<StackShare>();
  for (cmt::FrameId frame = 1; frame < std::min<std::uint32_t>(stacks.frame_count(), unwind_rules_max); ++frame)
    share->table.rule[frame].key = stacks.frame(frame).address | (stacks.frame(frame).is_exact ? UNWIND_EXACT : 0);
  return share;
}

/// Makes records of events.
class Recorder {
 public:
  /// `stacks`: those of the events, to be recorded too; or null.
  Recorder(bool is_sparse, const cmt::StackTable* stacks) : is_sparse_(is_sparse), stacks_(stacks) {}

  void add(const Event& event) {
    if (event.old_tag != 0 && event.old_address == 0) return;  // a trace without addresses
    ++now_;
    const cmt::KindTraits& kind = cmt::traits(event.kind);
    std::vector<Slot>& ring = passes_.back().slots[event.thread];
    if (const bool is_new = owners_.emplace(event.thread, true).second; is_new)
      ring.push_back({record_owner, std::uint64_t{event.thread} << 32 | stamp_of(event, 0)});
    const bool is_realloc = kind.allocates && kind.releases && event.old_tag != 0;
    if (is_realloc) {
      const std::uint64_t stamp = stamp_of(event, event.old_address);
      ring.push_back({event.old_address << slot_address_shift | record_realloc_begin, stamp});
    }
    if (stacks_ != nullptr && kind.allocates) stack_recorder_.record(*stacks_, event.stack, event.thread, ring);
    const std::uint64_t address = kind.allocates ? event.address : event.old_address;
    if (kind.counts) ring.push_back({record_count, event.count});
    if (event.size >> 32 != 0) ring.push_back({record_size, event.size});
    if (event.alignment != 0) ring.push_back({record_alignment, event.alignment});
    const std::uint64_t head = address << slot_address_shift | (is_realloc ? slot_has_old_block : 0);
    const std::uint64_t size = event.size >> 32 == 0 ? event.size : 0;
    ring.push_back({head | static_cast<std::uint64_t>(event.kind), size << 32 | stamp_of(event, address)});
    ++events_;
    if (events_ % pass_events == 0) end_pass();
  }

  std::vector<Pass> finish() {
    end_pass();
    passes_.pop_back();
    return std::move(passes_);
  }
  std::size_t events() const { return events_; }

 private:
  std::uint64_t stamp_of(const Event& event, std::uint64_t address) {
    if (!is_sparse_) return now_;
    std::uint32_t& last = touched_.emplace(address, event.thread).first->second;
    const bool has_changed_hands = address != 0 && last != event.thread;
    last = event.thread;
    return has_changed_hands ? now_ : pass_began_;
  }

  void end_pass() {
    passes_.back().cut = now_;
    pass_began_ = now_;
    passes_.emplace_back();
  }

  const bool is_sparse_;
  const cmt::StackTable* const stacks_;
  StackRecorder stack_recorder_;
  std::vector<Pass> passes_ = std::vector<Pass>(1);
  std::unordered_map<std::uint32_t, bool> owners_;
  std::unordered_map<std::uint64_t, std::uint32_t> touched_;  // the last thread, by address
  std::uint64_t now_ = 1, pass_began_ = 1;
  std::size_t events_ = 0;
};

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct PackedPass {
  std::vector<std::pair<std::uint32_t, Packed>> rings;
  std::uint64_t cut;
};

std::vector<PackedPass> pack(const std::vector<Pass>& passes) {
  Packer packer;
  std::vector<PackedPass> packed;
  for (const Pass& pass : passes) {
    PackedPass& all = packed.emplace_back(PackedPass{{}, pass.cut});
    for (const auto& [ring, slots] : pass.slots) {
      auto next = slots.begin();
      packer.append_while(slots.size(), [&](Slot& slot) { return slot = *next++, true; });
      all.rings.emplace_back(ring, packer.finish());
    }
  }
  return packed;
}

void merge(EventOrder& order, std::vector<PackedPass> passes) {
  for (PackedPass& pass : passes) {
    for (auto& [ring, records] : pass.rings) order.append_records(ring, std::move(records));
    order.merge_until(pass.cut);
  }
  order.merge_all();
}

/// The streams of a trace, as CmtSink makes them, not compressed.
class Streams {
 public:
  std::size_t add(const cmt::EventBatch& batch) {
    const std::span<const cmt::BlockEvent> events = batch.events();
    if (all_.empty()) start_block(events.front().tag != 0 ? events.front().tag : tags_of_reserve + 1);
    const cmt::BookedEvent* other = batch.others().data();
    for (std::size_t i = 0; (i += core_.add_short(events.subspan(i))) < events.size();) {
      const cmt::BlockEvent& event = events[i++];
      core_.add(event.tag != 0 ? event.event() : other++->event);
    }
    other = batch.others().data();
    for (const cmt::BlockEvent& event : events) addresses_.prefetch(event.block_size);
    for (const cmt::BlockEvent& event : events) {
      if (event.tag != 0) {
        addresses_.add_short(event);
      } else {
        addresses_.add(other->event, other->old.tag != 0 ? &other->old : nullptr);
        ++other;
      }
    }
    if (core_.events() == block_events || core_.full()) finish();
    return block_events - core_.events();
  }

  void finish() {
    all_.push_back(core_.finish());
    all_.push_back(addresses_.finish());
    core_.reset(core_.state());
  }

  const std::vector<std::string>& all() const { return all_; }

 private:
  void start_block(cmt::Tag next_tag) {
    core_.reset({.next_tag = next_tag});
    all_.emplace_back();
  }

  cmt::format::CoreEncoder core_;
  cmt::format::AddressEncoder addresses_;
  std::vector<std::string> all_;
};

std::uint64_t checksum_of(int fd, std::size_t bytes) {
  const auto* all = static_cast<const unsigned char*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0));
  std::uint64_t sum = 14695981039346656037u;  // FNV-1a
  for (std::size_t i = 0; i < bytes; ++i) sum = (sum ^ all[i]) * 1099511628211u;
  munmap(const_cast<unsigned char*>(all), bytes);
  return sum;
}

struct Figures {
  double pack, order, encode, compress, all;
  std::size_t bytes;
  std::uint64_t checksum;
};

/// Returns the reader of call stacks, or nothing for a recording without them.
std::optional<RingStacks> stacks_of(const StackShare* share) {
  if (share == nullptr) return std::nullopt;
  return std::optional<RingStacks>(std::in_place, share, false, [](std::uint64_t stamp) { return stamp; });
}

double time_order(std::vector<PackedPass> packed, const StackShare* share) {
  auto stacks = stacks_of(share);
  EventOrder order(
      EarlierBlocks{tags_of_reserve}, [](cmt::EventBatch&) { return cmt::EventBatch::capacity; },
      stacks ? &*stacks : nullptr);
  const double begin = now_ns();
  merge(order, std::move(packed));
  return now_ns() - begin;
}

void time_streams(std::vector<PackedPass> packed, Figures& figures) {
  Streams streams;
  EventOrder order(EarlierBlocks{tags_of_reserve}, [&](cmt::EventBatch& batch) { return streams.add(batch); });
  double begin = now_ns();
  merge(order, std::move(packed));
  streams.finish();
  figures.encode = now_ns() - begin;
  cmt::format::Compressor compressor(1);
  begin = now_ns();
  for (const std::string& stream : streams.all()) compressor.compress(stream);
  figures.compress = now_ns() - begin;
}

void time_all(std::vector<PackedPass> packed, const StackShare* share, Figures& figures) {
  static Control control{};
  control.stacks_at = share != nullptr ? 1 : 0;
  auto stacks = stacks_of(share);
  const int fd = memfd_create("trace", 0);
  Outputs* writer = nullptr;
  EventOrder order(
      EarlierBlocks{tags_of_reserve},
      [&](cmt::EventBatch& batch) {
        writer->convert_stamps(batch);
        return writer->write_events(batch);
      },
      stacks ? &*stacks : nullptr);
  Outputs outputs(StartFacts::read(control).value(), {"trace.cmt"}, {fd}, false, order.live_blocks());
  writer = &outputs;
  if (stacks) outputs.use_stacks(stacks->table());
  const double begin = now_ns();
  merge(order, std::move(packed));
  outputs.finish(order.repairs(), false, 0);
  figures.all = now_ns() - begin;
  figures.bytes = outputs.bytes();
  figures.checksum = checksum_of(fd, figures.bytes);
  close(fd);
}

/// Measures one stage, or all of them if `stage` is empty.
Figures run_once(const std::vector<Pass>& passes, const StackShare* share, const std::string& stage) {
  Figures figures{};
  const auto is_wanted = [&](const char* name) { return stage.empty() || stage == name; };
  const double begin = now_ns();
  auto packed = pack(passes);
  figures.pack = now_ns() - begin;
  if (is_wanted("order")) figures.order = time_order(std::move(packed), share);
  if (is_wanted("encode") && share == nullptr) time_streams(pack(passes), figures);
  if (is_wanted("all")) time_all(pack(passes), share, figures);
  return figures;
}

double median(std::vector<Figures>& rounds, double Figures::*member, std::size_t events) {
  std::sort(rounds.begin(), rounds.end(), [&](const Figures& a, const Figures& b) { return a.*member < b.*member; });
  return rounds[rounds.size() / 2].*member / static_cast<double>(events);
}

void measure(const char* path, bool is_sparse, bool has_stacks, int count, const std::string& stage) {
  cmt::ReadOptions options;
  options.stacks = has_stacks;
  cmt::Reader reader(path, options);
  Recorder recorder(is_sparse, has_stacks ? &reader.stacks() : nullptr);
  for (auto batch = reader.read(); !batch.empty() && recorder.events() < events_max; batch = reader.read()) {
    for (const Event& event : batch) {
      if (event.label.empty()) recorder.add(event);
    }
  }
  const auto share = has_stacks ? share_of(reader.stacks()) : nullptr;
  const std::size_t events = recorder.events();
  const std::vector<Pass> passes = recorder.finish();
  std::vector<Figures> rounds;
  for (int i = 0; i < count; ++i) rounds.push_back(run_once(passes, share.get(), stage));
  std::printf("%-7s%-8s %9zu", is_sparse ? "sparse" : "full", has_stacks ? "+stacks" : "", events);
  for (const auto member : {&Figures::pack, &Figures::order, &Figures::encode, &Figures::compress, &Figures::all})
    std::printf(" %8.1f", median(rounds, member, events));
  const Figures& any = rounds.front();
  std::printf(" %8.3f  %016lx\n", static_cast<double>(any.bytes) / static_cast<double>(events), any.checksum);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) return std::fputs("usage: collector_speed FILE [ROUNDS [STAGE]]\n", stderr), 2;
  try {
    const int rounds = argc >= 3 ? std::max(1, std::atoi(argv[2])) : 5;
    std::puts("stamps             events     pack    order   encode compress      all    bytes  checksum");
    const bool has_stacks = cmt::Reader(argv[1]).header().has_stacks;
    for (const bool is_sparse : {false, true}) {
      for (const bool with_stacks : {false, true}) {
        if (has_stacks || !with_stacks) measure(argv[1], is_sparse, with_stacks, rounds, argc == 4 ? argv[3] : "");
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collector_speed: %s\n", error.what());
    return 1;
  }
}
