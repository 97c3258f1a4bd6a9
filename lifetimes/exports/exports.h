/// lifetimes --folded, --pprof and --speedscope: the stacks of a trace as files for other tools.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/stacks/contributors.h"
#include "toolkit/files/compressed_output.h"
#include "toolkit/files/output_file.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// A form in which other tools read the stacks of a trace.
enum class ExportForm { none, folded, pprof, speedscope };

struct ExportOptions {
  ExportForm form = ExportForm::none;
  analysis::Metric metric = analysis::Metric::peak;  ///< of folded stacks
  std::string path{};                                ///< of the file of the other forms
};

/// Returns the value of --sort or --folded. Throws UsageError.
analysis::Metric parse_metric_option(const command::CommandLine& line, const char* option);

/// Returns the options --folded, --pprof and --speedscope, one of which may be given. Throws UsageError.
ExportOptions parse_export_options(const command::CommandLine& line);

/// The facts about a trace that a file contains beside the stacks.
struct ExportFacts {
  const Header& header;
  std::string name;                   ///< of the trace
  std::vector<std::string> comments;  ///< for people
};

/// Writes the stacks of a trace in one of the forms. A file gets its name when it is complete.
class Export {
 public:
  /// Opens the file, so that an error is reported before the work begins. Throws std::system_error.
  explicit Export(const ExportOptions& options);

  /// `charges` is for pprof, which shows the innermost function of a stack as the one that allocates.
  void write(const StackTable& stacks, const analysis::Uses& uses, const analysis::ChargeRule& charges,
             const std::string& hidden, const ExportFacts& facts);

 private:
  ExportOptions options_;
  std::optional<files::OutputFile> file_;
  std::optional<files::CompressedOutput> bytes_;
};

}  // namespace cmt::lifetimes
