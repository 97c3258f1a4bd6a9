// Batches: sinks write the same bytes for batches and single events, and times, stacks and cuts reach every event.

#include "libcmt/trace/writer/event_batch.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "libcmt/trace/files.h"
#include "libcmt/trace/writer/ledger.h"
#include "libcmt/trace/writer/sink.h"

using namespace cmt;

namespace {

/// A .cmt in memory, which a sink writes, with the ledger that keeps its live blocks.
struct FileInMemory {
  int fd = memfd_create("trace", MFD_CLOEXEC);
  Output output{fd};
  Ledger ledger;
  std::unique_ptr<Sink> sink = make_sink(output, {}, {.block_events = 500}, ledger);

  ~FileInMemory() { close(fd); }

  std::string finish() {
    sink->finish(ledger.totals());
    std::string bytes(output.offset(), '\0');
    REQUIRE(pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
};

/// Events of all kinds, in more forms than a block may have. Most of them have a short form.
std::vector<Event> random_events(bool has_times) {
  std::mt19937 random(7);
  std::vector<Event> live;
  std::vector<Event> events;
  Tag tag = 0;
  std::uint64_t pool_block = 0;
  for (int i = 0; i < 20000; ++i) {
    Event event{.kind = random() % 8 != 0 ? Kind::malloc : known_kinds[random() % known_kinds.size()],
                .thread = static_cast<std::uint32_t>(random() % 50 == 0 ? random() % 3 : 0)};
    if (random() % 2 == 0) event.kind = Kind::free;
    const KindTraits& kind = traits(event.kind);
    if (kind.sizes) event.size = random() % 9 == 0 ? std::uint64_t{1} << random() % 60 : random() % 500;
    if (kind.counts) event.count = random() % 4;
    if (kind.aligns || (kind.may_align && random() % 2 == 0)) event.alignment = 32u >> random() % 7;
    if (kind.labels) event.label = "label";
    if (is_of_pool(event.kind)) {
      event.kind = pool_block % 2 == 0 ? Kind::pool_malloc : Kind::pool_free;
      event.alignment = event.size = 0;
      event.label = "python";
      event.pool_block = event.kind == Kind::pool_malloc ? ++pool_block / 2 + 1 : pool_block++ / 2 + 1;
    }
    if (kind.is_given() && !live.empty() && random() % 9 != 0) {
      std::swap(live[random() % live.size()], live.back());
      event.old_tag = live.back().tag;
      event.old_address = live.back().address;
    }
    if (kind.allocates && random() % 9 != 0) event.tag = ++tag, event.address = 0x1000 + random() % 3000 * 16;
    if (event.ends_block()) live.pop_back();
    if (event.tag != 0) live.push_back(event);
    if (has_times) event.time_ns = i * 10u;
    events.push_back(event);
  }
  return events;
}

bool has_short_form(const BookedEvent& booked) {
  const Event& event = booked.event;
  const KindTraits& kind = traits(event.kind);
  const bool is_given = event.old_tag != 0;
  return kind.allocates != kind.releases && !kind.counts && (event.tag != 0) != (is_given && booked.old.tag != 0) &&
         (event.size | booked.old.size) >> 32 == 0;
}

void append(EventBatch& batch, const BookedEvent& booked) {
  const Event& event = booked.event;
  if (!has_short_form(booked)) {
    batch.next_other() = booked;
    return batch.append_next_other();
  }
  const bool makes = event.tag != 0;
  batch.room().front() = {.address = makes ? event.address : event.old_address,
                          .tag = makes ? event.tag : event.old_tag,
                          .time_ns = event.time_ns,
                          .block_size = static_cast<std::uint32_t>(makes ? event.size : booked.old.size),
                          .size = static_cast<std::uint32_t>(event.size),
                          .thread = event.thread,
                          .kind = event.kind,
                          .makes_block = makes,
                          .alignment_log = static_cast<std::uint8_t>(std::bit_width(event.alignment))};
  batch.append(1);
}

}  // namespace

TEST_CASE("event batch: a .cmt is the same whether its events come one by one or in batches, to one thread or two") {
  for (const bool has_times : {false, true}) {
    FileInMemory one_by_one, in_batches, by_two_threads;
    Tally tally;
    EventBatch batch;
    std::size_t limit = 1, whole = 0, batches = 0;
    for (const Event& event : random_events(has_times)) {
      const Ledger::Entry entry = one_by_one.ledger.book(event);
      REQUIRE(entry.accepted);
      REQUIRE((in_batches.ledger.book(event).accepted && by_two_threads.ledger.book(event).accepted));
      one_by_one.sink->add_event({event, entry.old});
      append(batch, {event, entry.old});
      whole += batch.events().back().tag != 0;
      if (batch.size() < std::min(limit, EventBatch::capacity)) continue;
      in_batches.sink->add_batch(batch);
      by_two_threads.sink->add_batch(batch);
      by_two_threads.sink->use_thread(++batches % 50 < 40);
      tally.count(batch);
      batch.clear();
      limit = in_batches.sink->room();
    }
    CHECK(whole > 10000);
    in_batches.sink->add_batch(batch);
    by_two_threads.sink->add_batch(batch);
    tally.count(batch);
    const std::string bytes = one_by_one.finish();
    CHECK(bytes == in_batches.finish());
    CHECK(bytes == by_two_threads.finish());
    const Totals &got = tally.totals(), &wanted = one_by_one.ledger.totals();
    CHECK(got.by_kind == wanted.by_kind);
    CHECK(got.peak_live_bytes == wanted.peak_live_bytes);
    CHECK(got.peak_live_bytes_event == wanted.peak_live_bytes_event);
    CHECK(got.end_live_blocks == wanted.end_live_blocks);
    CHECK(got.allocated_bytes == wanted.allocated_bytes);
    CHECK(got.threads == wanted.threads);
  }
}

TEST_CASE("event batch: truncating and converting times reaches the events beside the list too") {
  EventBatch batch;
  for (std::uint64_t i = 1; i <= 6; ++i)
    append(batch, {{.kind = i % 2 == 0 ? Kind::malloc : Kind::mark, .tag = i % 2 == 0 ? i : 0, .time_ns = i}, {}});
  batch.truncate(4);
  batch.convert_times([](std::uint64_t time) { return time * 10; });
  std::string seen;
  batch.for_each([&](const BookedEvent& booked) {
    seen += std::string(name(booked.event.kind)) + std::to_string(booked.event.time_ns) + " ";
  });
  CHECK(seen == "mark10 malloc20 mark30 malloc40 ");
  batch.truncate(0);
  CHECK(batch.empty());
  CHECK(batch.others().empty());
}

TEST_CASE("event batch: a column has the stack of every event, of those beside the list too") {
  EventBatch batch;
  append(batch, {{.kind = Kind::malloc, .tag = 1}, {}});
  CHECK(batch.stacks().empty());
  append(batch, {{.kind = Kind::mark, .stack = 7}, {}});
  batch.stack_room()[0] = 9;
  append(batch, {{.kind = Kind::malloc, .tag = 2}, {}});
  EventBatch copy;
  copy.assign(batch);
  batch.clear();
  CHECK(batch.stacks().empty());
  std::vector<StackId> seen;
  copy.for_each([&](const BookedEvent& booked) { seen.push_back(booked.event.stack); });
  CHECK(seen == std::vector<StackId>{0, 7, 9});
}
