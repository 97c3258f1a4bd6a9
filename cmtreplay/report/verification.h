#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/run/worker_process.h"

namespace cmt::replay {

/// A promise that an allocator broke.
struct Finding {
  std::uint64_t event = 0;  ///< counted from 1; 0: after the trace, of a block never freed or of an impossible request
  std::string fault;        ///< "misaligned", "overlap"
  std::string call;         ///< as a program writes it: "aligned_alloc(256, 512)"
  std::uint64_t address = 0;
  std::string text;  ///< the rest of the sentence: "is no multiple of 256"

  /// "event 12: aligned_alloc(256, 512) = 7f0010: is no multiple of 256".
  std::string sentence() const;
};

/// What verifying an allocator came to.
struct Verified {
  Allocator allocator;
  std::uint64_t faults = 0;  ///< all; `findings` are the first of them
  std::vector<Finding> findings = {};
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t refused_calls = 0;  ///< returned NULL here and not when recorded: no fault
  bool has_usable_size = false;
  std::optional<Death> death = {};
  std::string fatal_call = {};  ///< the impossible request that it died of; empty: none

  bool good() const { return faults == 0 && !death; }
};

/// Replays once, on an allocator whose every call is checked (verify.c). Throws Interrupted.
Verified run_verification(const Stage& stage, const Allocator& allocator);

/// For people: a line a finding, and a line about each allocator. For programs: schema cmt.replay/1, with the findings.
std::string verification_text(const std::vector<Verified>& all, std::uint64_t events);
std::string verification_json(const std::vector<Verified>& all, const std::string& file, std::uint64_t events,
                              unsigned timeout_seconds);

}  // namespace cmt::replay
