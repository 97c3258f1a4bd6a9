/// Verifies an allocator (--verify): one run in which the worker checks every call.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/protocol.h"
#include "cmtreplay/run/worker_process.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {

/// The names of faults, in the order of enum fault.
inline constexpr std::array<std::string_view, fault_count> fault_names{
    "misaligned",  "overlap",    "contents", "moved",   "not_zero", "usable_size",
    "usable_size", "impossible", "lost",     "refused", "error",    "pointer"};

/// A promise that an allocator broke.
struct Finding {
  std::uint64_t event = 0;  ///< counted from 1; 0: after the trace, for a block never freed or a call made then
  finding found{};
  std::uint64_t old_event = 0;  ///< that made the block which the call frees or resizes; 0: none, or after the end
  std::uint64_t neighbour_event = 0;  ///< that made the block which overlaps

  /// The call as a program writes it: "aligned_alloc(256, 512)".
  std::string call() const;
  /// The fault in words: "is no multiple of 256". Names the blocks that it is about.
  std::string text() const;
  /// The whole sentence: "event 12: aligned_alloc(256, 512) = 7f0010: is no multiple of 256".
  std::string sentence() const;

 private:
  std::string fault_text() const;
};

template <class Visitor, output::DescribedAs<Finding> F>
void describe(Visitor& field, F& finding) {
  field("event", finding.event == 0 ? std::nullopt : std::optional(finding.event), "null: after the last event");
  field("fault", fault_names[finding.found.fault], "which promise was broken");
  field("call", finding.call(), "as a program writes it");
  field("address", output::hex(finding.found.address), "of the block; 0: the call failed");
  const auto of_block = [](const finding_block& block, std::uint64_t figure) {
    return block.is_known != 0 && figure != 0 ? std::optional(figure) : std::nullopt;
  };
  const finding_block &old = finding.found.old, &neighbour = finding.found.neighbour;
  field("old_bytes", of_block(old, old.size), "of the block that the call frees or resizes; null: not at fault");
  field("old_event", of_block(old, finding.old_event), "the event that made that block; null: none, or after the last");
  field("neighbour_bytes", of_block(neighbour, neighbour.size), "of the live block that overlaps; null: none does");
  field("neighbour_event", of_block(neighbour, finding.neighbour_event), "the event that made that block");
  field("text", finding.text(), "what is wrong");
}

/// The result of verifying an allocator.
struct Verification {
  Allocator allocator;
  std::uint64_t faults = 0;  ///< all of them; `findings` has the first ones, without the fault that ended the process
  std::vector<Finding> findings = {};
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unchecked = 0;      ///< blocks that were not checked, since memory was short
  std::uint64_t refused_calls = 0;  ///< of the faults: returned NULL here and not when recorded
  bool has_usable_size = false;
  std::optional<Death> death = {};
  std::string fatal_call = {};  ///< the call after the last event in which it died or hung; empty: none
  bool fatal_call_had_to_fail = false;

  /// Whether it refused every call that could have been checked, so that no fault could be found.
  bool checked_nothing() const { return blocks == 0 && refused_calls != 0 && !death; }
  std::string refused_all_text() const;
  bool good() const { return faults == 0 && !death; }
};

template <class Visitor, output::DescribedAs<Verification> V>
void describe(Visitor& field, V& verification) {
  field("name", verification.allocator.name, "as --alloc gave it");
  field("library", verification.allocator.library, "the file of its malloc");
  field("faults", verification.faults,
        "all, with a call after the last event that ended the process; findings has the first thousand of the others");
  field("blocks", verification.blocks, "blocks that were checked");
  field("bytes", verification.bytes, "bytes asked for by them");
  field("unchecked_blocks", verification.unchecked, "of them, those not checked: memory was short");
  field("usable_size_checked", verification.has_usable_size, "whether the library reports usable sizes");
  field("refused_calls", verification.refused_calls,
        "of the faults: calls that returned NULL here and not when recorded");
  field("death", verification.death ? std::optional(verification.death->text()) : std::nullopt,
        "how the process ended that should not have");
  const std::uint64_t event = verification.death ? verification.death->event : 0;
  field("death_event", event == 0 ? std::nullopt : std::optional(event),
        "the event in which it died, counted from 1; null: in none");
  field("findings", verification.findings, "the first thousand faults");
}

/// Replays once and checks every call (worker/verify.c). If it is to `stop` for a debugger, this process becomes the
/// worker, and the call returns in a child of it. Throws Interrupted.
Verification run_verification(const ReplaySettings& settings, const Allocator& allocator,
                              const StopPoint* stop = nullptr);

/// For people: a line for each finding, and one for the allocator. `again`: the command and options that verify it
/// again, to which an event is added for the debugger.
std::string verification_text(const Verification& verified, std::uint64_t events, const std::string& again);
/// For programs: schema cmt.replay/1, with the findings of all allocators.
std::string verification_json(const std::vector<Verification>& all, const std::string& file, std::uint64_t events);

}  // namespace cmt::replay
