/// The report of a sampled trace: estimates by function, as those of lifetimes --by. Memory over time, findings, pages
/// and places need all blocks.
#pragma once

#include <string>

#include "analysis/stacks/contributors.h"
#include "cmtreport/input/read_traces.h"
#include "cmtreport/page/report_page.h"
#include "toolkit/output/json.h"

namespace cmt::report {

/// Whether a file is a sampled trace. False of a pipe, which can be read only once.
bool is_sampled(const std::string& path);

/// Estimates what each function has allocated and has live, or each size if the trace has no stacks. Throws FormatError
/// and std::system_error.
analysis::Contributors estimate_callers(const std::string& path, const ReadSettings& settings);

/// With a line of the parts that cannot be computed.
std::string sampled_text(const analysis::Contributors& report);
/// As lifetimes --by --json, and `not_computed`.
void write_json(output::JsonWriter& json, const analysis::Contributors& report);
/// A page of that text, without scripts.
std::string sampled_page(const analysis::Contributors& report, const Maker& maker);

}  // namespace cmt::report
