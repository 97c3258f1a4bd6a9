#include "libcmt/text/format.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"
#include "toolkit/output/utf8.h"
#include "trace2cmt/inspect/info.h"

namespace trace2cmt {
namespace {

using cmt::output::Align;
using cmt::output::bytes_text;
using cmt::output::fixed;
using cmt::output::time_text;
using cmt::output::with_commas;

std::string stream_title(const StreamSize& stream) {
  const std::string_view name = stream_name(stream.id);
  return name.empty() ? "stream " + std::to_string(stream.id) : std::string(name);
}

/// Metadata can hold anything; a terminal should not get it.
std::string printable(std::string_view text) {
  std::string quoted;
  cmt::text::append_string(quoted, cmt::output::to_utf8(text));
  return quoted.substr(1, quoted.size() - 2);
}

std::string recorded_text(const cmt::Header& header) {
  std::string text = "calls";
  if (header.has_addresses) text += ", addresses";
  if (header.has_times) text += ", times";
  if (header.has_usable) text += ", usable sizes";
  return text;
}

std::string facts_text(const Info& info) {
  const cmt::Totals& totals = info.totals;
  cmt::output::Table table({{""}, {""}});
  const auto add = [&](const std::string& what, const std::string& value) { table.add({"  " + what, value}); };
  for (const auto& [key, value] : info.header.metadata) add(printable(key), printable(value));
  add("recorded", recorded_text(info.header));
  if (info.last_time_ns) add("last event", "at " + time_text(static_cast<double>(*info.last_time_ns)));
  add("threads", with_commas(totals.threads));
  add("allocated", bytes_text(totals.allocated_bytes) + " in " + with_commas(totals.allocations) + " blocks");
  add("peak live", bytes_text(totals.peak_live_bytes) + " at event " + with_commas(totals.peak_live_bytes_event) +
                       "; " + with_commas(totals.peak_live_blocks) + " blocks");
  add("live at end", bytes_text(totals.end_live_bytes) + " in " + with_commas(totals.end_live_blocks) + " blocks");
  add("refused", with_commas(totals.failed));
  add("repairs", with_commas(totals.repairs.total()));
  const std::string text = table.text();
  return text.substr(text.find('\n') + 1);
}

std::string kinds_text(const cmt::Totals& totals) {
  cmt::output::Table table({{"  kind"}, {"events", Align::right}});
  for (std::size_t kind = 0; kind < cmt::kind_limit; ++kind) {
    const std::uint64_t events = totals.by_kind[kind];
    if (events != 0) table.add({"  " + std::string(name(static_cast<cmt::Kind>(kind))), with_commas(events)});
  }
  return table.text();
}

std::string layout_text(const Info& info) {
  const Layout& layout = *info.layout;
  const auto per_event = [&](std::uint64_t bytes) { return fixed(info.per_event(bytes), 3); };
  cmt::output::Table table({{"  stream"},
                            {"before zstd", Align::right},
                            {"bytes", Align::right},
                            {"before, an event", Align::right},
                            {"an event", Align::right}});
  for (const StreamSize& stream : layout.streams) {
    table.add({"  " + stream_title(stream), with_commas(stream.raw_bytes), with_commas(stream.bytes),
               per_event(stream.raw_bytes), per_event(stream.bytes)});
  }
  table.add({"  the rest", "", with_commas(layout.other_bytes), "", per_event(layout.other_bytes)});
  return table.text() + "  in " + with_commas(layout.blocks) + " blocks of the stream, " +
         with_commas(layout.keyframes) + " of them keyframes\n";
}

void put_streams(cmt::output::JsonWriter& json, const Info& info) {
  json.field("stream_blocks", info.layout->blocks);
  json.field("keyframes", info.layout->keyframes);
  json.begin_array("streams");
  for (const StreamSize& stream : info.layout->streams) {
    json.begin_object();
    json.field("id", stream.id);
    json.field("name", stream_title(stream));
    json.field("raw_bytes", stream.raw_bytes);
    json.field("bytes", stream.bytes);
    json.field("bytes_per_event", info.per_event(stream.bytes));
    json.end_object();
  }
  json.end_array();
  json.field("other_bytes", info.layout->other_bytes);
}

void put_counts(cmt::output::JsonWriter& json, const cmt::Totals& totals) {
  json.field("events", totals.events);
  json.begin_object("by_kind");
  for (std::size_t kind = 0; kind < cmt::kind_limit; ++kind) {
    const std::uint64_t events = totals.by_kind[kind];
    if (events != 0) json.field(name(static_cast<cmt::Kind>(kind)), events);
  }
  json.end_object();
  json.field("failed_calls", totals.failed);
  json.field("threads", totals.threads);
  json.field("allocated_blocks", totals.allocations);
  json.field("allocated_bytes", totals.allocated_bytes);
  json.field("peak_live_blocks", totals.peak_live_blocks);
  json.field("peak_live_bytes", totals.peak_live_bytes);
  json.field("peak_live_bytes_event", totals.peak_live_bytes_event);
  json.field("end_live_blocks", totals.end_live_blocks);
  json.field("end_live_bytes", totals.end_live_bytes);
  json.field("repairs", totals.repairs.total());
  json.begin_object("repairs_by_kind");
  for (int kind = 0; kind < cmt::repair_count; ++kind) {
    const auto repair = static_cast<cmt::Repair>(kind);
    if (totals.repairs[repair] != 0) json.field(name(repair), totals.repairs[repair]);
  }
  json.end_object();
}

}  // namespace

std::string to_text(const Info& info) {
  std::string text = info.name + ": " + std::string(name(info.header.format)) + ", " + with_commas(info.totals.events) +
                     " events in " + with_commas(info.file_bytes) + " bytes, " +
                     fixed(info.per_event(info.file_bytes), 3) + " an event\n";
  if (info.cut_off) text += "  breaks off: the figures are of what is whole\n";
  if (info.totals.truncated && !info.cut_off) text += "  the recording broke off\n";
  text += facts_text(info) + kinds_text(info.totals);
  return info.layout ? text + layout_text(info) : text;
}

std::string to_json(const Info& info) {
  cmt::output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.info/1");
  json.field("file", info.name);
  json.field("format", name(info.header.format));
  json.field("file_bytes", info.file_bytes);
  json.field("bytes_per_event", info.per_event(info.file_bytes));
  json.field("totals_stated", info.totals_stated);
  json.field("cut_off", info.cut_off);
  json.field("truncated", info.totals.truncated);
  json.field("has_addresses", info.header.has_addresses);
  json.field("has_times", info.header.has_times);
  json.field("has_usable_sizes", info.header.has_usable);
  json.field("last_time_ns", info.last_time_ns);
  json.begin_array("metadata");
  for (const auto& [key, value] : info.header.metadata) {
    json.begin_object();
    json.field("key", key);
    json.field("value", value);
    json.end_object();
  }
  json.end_array();
  put_counts(json, info.totals);
  if (info.layout) put_streams(json, info);
  json.end_object();
  return json.take();
}

}  // namespace trace2cmt
