// The summary as JSON, schema "cmt.overhead/1". What the words mean is told in summary.h.
//
//   schema, name, page_size_bytes, events, defects, truncated, pages_peak
//   samples[]   event, time_ns (null: not recorded), live_bytes, live_blocks, pages, free_pages, span_pages,
//               small_gap_bytes, slop_bytes (null: not recorded); and, null but for every eighth or 16th sample and the
//               last, old_bytes, old_packed_bytes, old_pages, pinned_pages, separable_pages
//   peak        of live bytes: the same up to slop_bytes
//   gaps_at_peak[]   [gap_bytes_min, gaps, bytes]
//   pins        event, pinned_pages, pages, pages_by_size[]: [size_bytes_min, pages],
//               oldest[]: address, tag, size_bytes, age_allocated_bytes
//
// and with --plot what the picture shows:
//
//   curve[]     moments as in samples[] up to slop_bytes: of each of at most 512 intervals the one with the least and
//   the
//               one with the most live bytes
//   address_map bin_bytes, moments[]: event, time_ns, bins[]: [address / bin_bytes, live_bytes], those that blocks lie
//   in

#include <initializer_list>

#include "overhead/report.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"

namespace cmt::overhead {
namespace {

using heap::SizeClasses;
using output::JsonWriter;

void write_tuple(JsonWriter& json, std::initializer_list<std::uint64_t> numbers) {
  json.begin_array();
  for (const std::uint64_t number : numbers) json.value(number);
  json.end_array();
}

void write_moment(JsonWriter& json, const Sample& sample) {
  json.field("event", sample.event);
  json.field("time_ns", sample.time_ns == unknown ? std::nullopt : std::optional(sample.time_ns));
  json.field("live_bytes", sample.live_bytes);
  json.field("live_blocks", sample.live_blocks);
  json.field("pages", sample.pages);
  json.field("free_pages", sample.free_pages);
  json.field("span_pages", sample.span_pages());
  json.field("small_gap_bytes", sample.small_gap_bytes);
  json.field("slop_bytes", sample.slop_bytes);
}

void write_old(JsonWriter& json, const std::optional<OldBlocks>& old, std::uint64_t page_size) {
  using Number = std::optional<std::uint64_t>;
  json.field("old_bytes", old ? Number(old->bytes) : Number());
  json.field("old_packed_bytes", old ? Number(old->packed_bytes) : Number());
  json.field("old_pages", old ? Number(old->pages) : Number());
  json.field("pinned_pages", old ? Number(old->pinned) : Number());
  json.field("separable_pages", old ? Number(old->separable(page_size)) : Number());
}

void write_samples(JsonWriter& json, const Summary& summary) {
  json.begin_array("samples");
  for (const Sample& sample : summary.samples) {
    json.begin_object();
    write_moment(json, sample);
    write_old(json, sample.old, summary.page_size);
    json.end_object();
  }
  json.end_array();
}

void write_gaps(JsonWriter& json, const Summary& summary) {
  json.begin_array("gaps_at_peak");
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    const Gaps& gaps = summary.gaps[i];
    if (gaps.count != 0) write_tuple(json, {SizeClasses::low(i), gaps.count, gaps.bytes});
  }
  json.end_array();
}

void write_pins(JsonWriter& json, const Pins& pins) {
  json.begin_object("pins");
  json.field("event", pins.event);
  json.field("pinned_pages", pins.pinned);
  json.field("pages", pins.pages);
  json.begin_array("pages_by_size");
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    if (pins.pages_by_size[i] != 0) write_tuple(json, {SizeClasses::low(i), pins.pages_by_size[i]});
  }
  json.end_array();
  json.begin_array("oldest");
  for (const Pin& pin : pins.oldest) {
    json.begin_object();
    json.field("address", output::hex(pin.block.address));
    json.field("tag", pin.block.tag);
    json.field("size_bytes", pin.block.size);
    json.field("age_allocated_bytes", pin.age_bytes);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_curve(JsonWriter& json, const std::vector<Sample>& curve) {
  json.begin_array("curve");
  for (const Sample& sample : curve) {
    json.begin_object();
    write_moment(json, sample);
    json.end_object();
  }
  json.end_array();
}

void write_map(JsonWriter& json, const AddressMap& map) {
  json.begin_object("address_map");
  json.field("bin_bytes", map.bin_bytes);
  json.begin_array("moments");
  for (const AddressMap::Moment& moment : map.moments) {
    json.begin_object();
    json.field("event", moment.event);
    json.field("time_ns", moment.time_ns == unknown ? std::nullopt : std::optional(moment.time_ns));
    json.begin_array("bins");
    for (const AddressMap::Bin& bin : moment.bins) write_tuple(json, {bin.bin, bin.live_bytes});
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string to_json(const Summary& summary) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.overhead/1");
  json.field("name", summary.name);
  json.field("page_size_bytes", summary.page_size);
  json.field("events", summary.events);
  json.field("defects", summary.defects);
  json.field("truncated", summary.truncated);
  json.field("pages_peak", summary.pages_peak);
  write_samples(json, summary);
  json.begin_object("peak");
  write_moment(json, summary.peak);
  json.end_object();
  write_gaps(json, summary);
  write_pins(json, summary.pins);
  if (summary.plot) {
    write_curve(json, summary.plot->curve);
    write_map(json, summary.plot->map);
  }
  json.end_object();
  return json.take();
}

}  // namespace cmt::overhead
