// Runs the verification, and puts its findings into words.
#include "cmtreplay/report/verification.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <system_error>

#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

/// The most lines for each kind of fault on standard output.
constexpr std::uint64_t shown_of_kind = 10;

using output::hex;
using output::with_commas;

std::vector<Finding> findings_of(const verification& shared, const PreparedTrace& trace) {
  const std::span found(shared.findings, std::min<std::uint64_t>(shared.found, findings_max));
  std::vector<OperationPosition> positions;
  for (const finding& finding : found) {
    positions.push_back({.lane = static_cast<std::uint32_t>(finding.lane), .words = finding.position});
    for (const finding_block& block : {finding.old, finding.neighbour})
      positions.push_back({.lane = block.lane, .words = block.is_known != 0 ? block.position : finding_at_end});
  }
  const std::vector<std::uint64_t> events = trace.events_at(positions, trace.plan().order);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < found.size(); ++i)
    findings.push_back({events[3 * i], found[i], events[3 * i + 1], events[3 * i + 2]});
  return findings;
}

/// The events that were checked: "10 events, ", or "the 3 events before it died, ".
std::string checked_text(const Verification& verified, std::uint64_t events) {
  const std::optional<Death>& death = verified.death;
  if (!death || (death->event == 0 && death->began)) return output::counted(events, "event") + ", ";
  return "the " + output::counted(death->event == 0 ? 0 : death->event - 1, "event") + " before it died, ";
}

/// The line with the command that stops before the first fault. Empty if there is none.
std::string debugger_text(const Verification& verified, std::uint64_t events, const std::string& again) {
  if (verified.good()) return "";
  std::uint64_t event = verified.death ? verified.death->event : 0;
  if (!verified.findings.empty()) event = verified.findings.front().event;
  if (event == 0) event = verified.death && !verified.death->began ? 1 : events + 1;
  return verified.allocator.in_line() + ": to stop before " +
         (event > events ? "that" : "event " + with_commas(event)) + ": gdb -ex run --args " + again +
         " --until=" + std::to_string(event) + "\n";
}

std::string refused_text(const Verification& verified) {
  return verified.refused_calls == 0 ? "" : "; refused " + output::counted(verified.refused_calls, "call");
}

/// " (100 bytes, allocated at event 6)". Empty for a block that is not known.
std::string block_text(const finding_block& block, std::uint64_t event) {
  if (block.is_known == 0) return "";
  const std::string when = event == 0 ? "after the last event" : "at event " + with_commas(event);
  return " (" + output::counted(block.size, "byte") + ", allocated " + when + ")";
}

bool aligns(const finding& found) {
  return found.call == call_aligned_alloc || found.call == call_posix_memalign || found.call == call_memalign;
}

/// posix_memalign also needs a multiple of the size of a pointer.
bool is_valid_alignment(const finding& found) {
  return std::has_single_bit(found.alignment) &&
         (found.call != call_posix_memalign || found.alignment >= sizeof(void*));
}

std::string impossible_text(const finding& found) {
  if (aligns(found) && !is_valid_alignment(found)) return "is not refused, and the alignment is not valid";
  return std::string("is not NULL, and nothing can be so ") +
         (aligns(found) && found.alignment > page_bytes ? "aligned" : "large");
}

/// The error that a call left, and those that it may leave (worker/verify_end.c).
std::string error_text(const finding& found) {
  const int error = static_cast<int>(found.other);
  const std::string it =
      std::to_string(error) + (error == 0 ? "" : " (" + std::generic_category().message(error) + ")");
  if (found.call != call_posix_memalign)
    return "errno is " + it + ", not ENOMEM" + (found.call < call_aligned_alloc ? "" : " or EINVAL");
  return "returned " + it + ", not " + (is_valid_alignment(found) ? "ENOMEM" : "EINVAL");
}

}  // namespace

std::string Finding::call() const {
  const std::string name = call_names[found.call];
  const std::string size = std::to_string(found.size);
  if (found.call == call_free) return "free(" + (found.address == 0 ? "..." : hex(found.address)) + ")";
  if (found.call == call_realloc) return "realloc(..., " + size + ")";
  if (found.call == call_reallocarray) return "reallocarray(..., " + std::to_string(found.count) + ", " + size + ")";
  if (found.call == call_calloc) return "calloc(" + std::to_string(found.count) + ", " + size + ")";
  return name + "(" + (aligns(found) ? std::to_string(found.alignment) + ", " : "") + size + ")";
}

std::string Finding::text() const {
  return fault_text() + block_text(found.old, old_event) + block_text(found.neighbour, neighbour_event);
}

std::string Finding::fault_text() const {
  const std::string offset = "byte " + std::to_string(found.other - found.address);
  switch (static_cast<fault>(found.fault)) {
    case fault_misaligned:
      return "is no multiple of " + std::to_string(found.alignment);
    case fault_overlap:
      return "overlaps the live block at " + hex(found.other);
    case fault_contents:
      return offset + " of " + std::to_string(found.size) + " is not what was written to it";
    case fault_moved:
      return offset + " is not what it was before the realloc";
    case fault_not_zero:
      return offset + " is not 0";
    case fault_usable:
      return "has a usable size of " + std::to_string(found.other);
    case fault_usable_other:
      return "has usable bytes in common with the live block at " + hex(found.other);
    case fault_impossible:
      return impossible_text(found);
    case fault_lost:
      return offset + " changed although the realloc was refused";
    case fault_refused:
      return "was not refused when it was recorded";
    case fault_error:
      return error_text(found);
    case fault_pointer:
      return "wrote that pointer although it failed";
  }
  return {};
}

std::string Finding::sentence() const {
  const std::string where = event == 0 ? "after the last event" : "event " + with_commas(event);
  const bool failed = found.fault == fault_refused || found.fault == fault_error;
  const std::string returned = found.call == call_free ? "" : " = " + (failed ? "NULL" : hex(found.address));
  return where + ": " + call() + returned + ": " + text();
}

std::string Verification::refused_all_text() const {
  return "refused all " + output::counted(refused_calls, "call") + " for memory: nothing was verified";
}

Verification run_verification(const ReplaySettings& settings, const Allocator& allocator, const StopPoint* stop) {
  const SharedMemory memory("verification", sizeof(verification));
  const MappedMemory mapping(memory, sizeof(verification));
  const auto& shared = *reinterpret_cast<const verification*>(mapping.begin());
  WorkerProcess worker(settings, allocator, {.verification_fd = memory.fd(), .is_debugged = stop != nullptr});
  Verification result{.allocator = allocator};
  try {
    worker.wait_until_ready();
    if (stop) worker.stop_at(*stop);
    worker.run_to_end();
    if (stop) worker.let_end();
  } catch (const Death& death) {
    result.death = death;
  }
  for (const lane& lane : worker.results().lanes()) result.refused_calls += lane.refused;
  result.faults = shared.found;
  result.blocks = shared.blocks;
  result.bytes = shared.bytes;
  result.unchecked = shared.unchecked;
  result.has_usable_size = shared.has_usable_size != 0;
  if (shared.trying != trying_nothing) result.fatal_call = Finding{0, shared.tried}.call();
  result.fatal_call_had_to_fail = shared.trying == trying_impossible;
  if (!result.fatal_call.empty()) ++result.faults;
  result.findings = findings_of(shared, settings.trace);
  return result;
}

std::string verification_text(const Verification& verified, std::uint64_t events, const std::string& again) {
  std::string text;
  const std::string name = verified.allocator.in_line();
  std::array<std::uint64_t, fault_count> seen{};  // one kind of fault at every call must not hide the others
  std::uint64_t shown = 0;
  for (const Finding& finding : verified.findings) {
    if (++seen.at(finding.found.fault) > shown_of_kind) continue;
    text += name + ": " + finding.sentence() + "\n";
    ++shown;
  }
  const bool is_fatal = !verified.fatal_call.empty();
  const std::uint64_t further = verified.faults - shown - (is_fatal ? 1 : 0);
  if (further != 0) text += name + ": and " + with_commas(further) + " more\n";
  if (is_fatal) {
    text += name + ": after the last event: " + verified.fatal_call + ": " +
            (verified.death && verified.death->hung() ? "did not return" : "ended the process") +
            (verified.fatal_call_had_to_fail ? " instead of failing\n" : "\n");
  }
  const std::optional<Death>& death = verified.death;
  if (death) text += name + ": died " + death->place(events) + ": " + death->text() + "\n";
  if (verified.checked_nothing())
    return text + name + ": " + verified.refused_all_text() + "\n" +
           (verified.findings.empty() ? "" : debugger_text(verified, events, again));
  return text + name + ": " + (verified.good() ? "no" : with_commas(verified.faults)) +
         (verified.faults == 1 ? " fault in " : " faults in ") + checked_text(verified, events) +
         output::counted(verified.blocks, "block") + ", " + output::bytes_text(verified.bytes) +
         refused_text(verified) + (verified.has_usable_size ? "" : "; has no usable size to check") +
         (verified.unchecked == 0 ? ""
                                  : "; " + output::counted(verified.unchecked, "block") + " unchecked: no memory") +
         "\n" + debugger_text(verified, events, again);
}

std::string verification_json(const std::vector<Verification>& all, const std::string& file, std::uint64_t events) {
  output::JsonWriter json;
  json.begin_object();
  json.field("schema", "cmt.replay/1");
  json.begin_object("trace");
  json.field("file", file);
  json.field("events", events);
  json.end_object();
  output::write_field(json, "verified", all);
  json.end_object();
  return json.take();
}

}  // namespace cmt::replay
