/// The reports of sampled traces: estimates by function with their 95 % intervals, as those of lifetimes --by and
/// --diff, and the live bytes over time. Findings, trees of calls, pages and places need all blocks.
#pragma once

#include <optional>
#include <string>

#include "cmtreport/input/read_traces.h"
#include "cmtreport/page/report_page.h"
#include "toolkit/picture/picture.h"

namespace cmt::report {

/// Whether a file is a sampled trace. False of a pipe, which can be read only once.
bool is_sampled(const std::string& path);

/// A finished report. Each form names the parts that cannot be computed.
struct SampledReport {
  std::string text;
  std::string json;  ///< as lifetimes --by --json or lifetimes --diff --json, with further keys
  picture::Picture picture{};
};

/// Estimates what each function has allocated and has live, or each size if the trace has no stacks. Throws FormatError
/// and std::system_error.
SampledReport estimate_callers(const std::string& path, const ReadSettings& settings);

/// Compares the estimates of two sampled traces, by function, or by size if one of them has no stacks. Throws as above,
/// also if only one of them is sampled.
SampledReport compare_samples(const std::string& before, const std::string& after, const ReadSettings& settings);

/// The page of a report, which holds its numbers.
std::string sampled_page(SampledReport report, const Maker& maker);

}  // namespace cmt::report
