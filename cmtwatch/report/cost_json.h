#pragma once

#include "cmtwatch/sample/sampling.h"
#include "toolkit/output/json.h"

namespace cmt::watch {

/// What a watch cost: the moments that it left out, its processor time and, where it paused processes, their pauses.
inline void append_cost(output::JsonWriter& json, const Outcome& outcome, bool pauses) {
  json.field("moments_missed", outcome.missed);
  json.field("moments_skipped_for_cost", outcome.skipped);
  json.field("cost_cpu_ns", outcome.cost_ns);
  json.field("cost_share", outcome.cost_share());
  if (!pauses) return;
  json.field("paused_ns", outcome.pauses.total_ns);
  json.field("paused_ns_max", outcome.pauses.max_ns);
}

}  // namespace cmt::watch
