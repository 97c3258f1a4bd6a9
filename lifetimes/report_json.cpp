// The summary as JSON, schema "cmt.lifetimes/1". Lifetimes are in `clock_unit`: "events", "ns" or "bytes".
//
//   schema, clock_unit, short_lived_max
//   inputs[]      name, events, defects, truncated, and its peak: peak_live_blocks, peak_live_bytes, peak_event,
//                 peak_time_ns (null: not recorded), peak_sizes[]: [size_bytes_min, blocks, bytes]
//   peak_live_bytes_max, peak_live_bytes_sum
//                 the greatest of the inputs' peaks and their sum: what all had together lies between
//   kinds         events by kind, those that occur
//   failed, unknown_ends, chain_max
//   chains[]      [reallocations_min, blocks]
//   sizes[]       size_bytes_min, size_bytes_max, allocated_blocks, allocated_bytes, ended_blocks, short_lived_blocks,
//                 temporary_blocks, other_thread_blocks, leaked_blocks, leaked_bytes, lifetime_max, lifetime_p50, _p90,
//                 _p99, and lifetimes[]: [lifetime_min, blocks]
//
// A class is named by its least number (heap/log_linear.h). Everything but the quantiles and the two bounds, which
// follow from the rest, is read back and added by --merge.

#include <algorithm>

#include "lifetimes/report.h"
#include "toolkit/output/json.h"

namespace cmt::lifetimes {
namespace {

using output::JsonWriter;

void write_tuple(JsonWriter& json, std::initializer_list<std::uint64_t> numbers) {
  json.begin_array();
  for (const std::uint64_t number : numbers) json.value(number);
  json.end_array();
}

void write_input(JsonWriter& json, const Input& input) {
  json.begin_object();
  json.field("name", input.name);
  json.field("events", input.events);
  json.field("defects", input.defects);
  json.field("truncated", input.truncated);
  json.field("peak_live_blocks", input.peak.live.blocks);
  json.field("peak_live_bytes", input.peak.live.bytes);
  json.field("peak_event", input.peak.event);
  json.field("peak_time_ns", input.peak.time_ns == unknown ? std::nullopt : std::optional(input.peak.time_ns));
  json.begin_array("peak_sizes");
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    const Amount& amount = input.peak.sizes[i];
    if (amount.blocks != 0) write_tuple(json, {SizeClasses::low(i), amount.blocks, amount.bytes});
  }
  json.end_array();
  json.end_object();
}

void write_inputs(JsonWriter& json, const Summary& summary) {
  std::uint64_t max = 0;
  std::uint64_t sum = 0;
  json.begin_array("inputs");
  for (const Input& input : summary.inputs) {
    write_input(json, input);
    max = std::max(max, input.peak.live.bytes);
    sum += input.peak.live.bytes;
  }
  json.end_array();
  json.field("peak_live_bytes_max", max);
  json.field("peak_live_bytes_sum", sum);
}

void write_size(JsonWriter& json, const Summary& summary, std::size_t i) {
  const SizeSummary& size = summary.sizes[i];
  json.begin_object();
  json.field("size_bytes_min", SizeClasses::low(i));
  json.field("size_bytes_max", SizeClasses::high(i));
  json.field("allocated_blocks", size.allocated.blocks);
  json.field("allocated_bytes", size.allocated.bytes);
  json.field("ended_blocks", size.ended);
  json.field("short_lived_blocks", size.short_lived);
  json.field("temporary_blocks", size.temporary);
  json.field("other_thread_blocks", size.other_thread);
  json.field("leaked_blocks", size.leaked.blocks);
  json.field("leaked_bytes", size.leaked.bytes);
  json.field("lifetime_max", size.lifetime_max);
  json.field("lifetime_p50", summary.quantile(i, 0.5));
  json.field("lifetime_p90", summary.quantile(i, 0.9));
  json.field("lifetime_p99", summary.quantile(i, 0.99));
  json.begin_array("lifetimes");
  for (std::size_t age = 0; age < AgeClasses::count; ++age) {
    const std::uint64_t count = summary.count_of(i, age);
    if (count != 0) write_tuple(json, {AgeClasses::low(age), count});
  }
  json.end_array();
  json.end_object();
}

void write_counts(JsonWriter& json, const Summary& summary) {
  json.begin_object("kinds");
  for (std::size_t i = 0; i < summary.by_kind.size(); ++i) {
    if (summary.by_kind[i] != 0) json.field(name(static_cast<Kind>(i)), summary.by_kind[i]);
  }
  json.end_object();
  json.field("failed", summary.failed);
  json.field("unknown_ends", summary.unknown_ends);
  json.field("chain_max", summary.chain_max);
  json.begin_array("chains");
  for (std::size_t i = 0; i < summary.chains.size(); ++i) {
    if (summary.chains[i] != 0) write_tuple(json, {AgeClasses::low(i), summary.chains[i]});
  }
  json.end_array();
}

}  // namespace

std::string to_json(const Summary& summary) {
  JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.lifetimes/1");
  json.field("clock_unit", summary.clock == heap::Clock::Unit::time ? "ns" : heap::Clock::name(summary.clock));
  json.field("short_lived_max", short_lived_max(summary.clock));
  write_inputs(json, summary);
  write_counts(json, summary);
  json.begin_array("sizes");
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    if (summary.sizes[i].allocated.blocks != 0) write_size(json, summary, i);
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::lifetimes
