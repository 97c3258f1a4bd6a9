// Parses the options of files for other tools, and opens, writes and completes such a file.
#include "lifetimes/exports/exports.h"

#include <unistd.h>

#include <stdexcept>

#include "analysis/stacks/folded.h"
#include "lifetimes/exports/pprof.h"
#include "lifetimes/exports/speedscope.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"

namespace cmt::lifetimes {

using namespace analysis;

Metric parse_metric_option(const command::CommandLine& line, const char* option) {
  return line.parsed(
      option, "peak",
      "bytes, blocks, peak, live, temporary, short-lived, other-thread, reallocated, growth or untouched",
      [](const std::string& text) { return parse_metric(text.empty() ? "peak" : text); });
}

ExportOptions parse_export_options(const command::CommandLine& line) {
  ExportOptions options;
  const auto is_missing = [](const std::string& path) { return path.empty() ? "expected a file" : ""; };
  if (line.has("folded")) {
    options.form = ExportForm::folded;
    options.metric = parse_metric_option(line, "folded");
  } else if (line.has("pprof")) {
    options.form = ExportForm::pprof;
    options.path = line.checked("pprof", is_missing);
  } else if (line.has("speedscope")) {
    options.form = ExportForm::speedscope;
    options.path = line.checked("speedscope", is_missing);
  }
  return options;
}

/// Returns folded stacks with one more function, the outermost one: the form has no room for comments.
static std::string below(const std::string& function, const std::string& lines) {
  if (function == "[]") return lines;
  std::string text;
  for (std::size_t at = 0, end = 0; at < lines.size(); at = end) {
    end = lines.find('\n', at) + 1;
    text += function + ";" + lines.substr(at, end - at);
  }
  return text;
}

Export::Export(const ExportOptions& options) : options_(options) {
  if (options.path.empty()) return;
  using files::Compression;
  const Compression compression =
      options.form == ExportForm::pprof ? Compression::gzip : files::compression_of(options.path);
  if (options.path == "-" && compression != Compression::none && isatty(STDOUT_FILENO) != 0)
    throw std::runtime_error("will not write a compressed file to a terminal; redirect it, or give it a name");
  bytes_.emplace(file_.emplace(options.path).fd(), compression, options.path);
}

void Export::write(const StackTable& stacks, const Uses& uses, const ChargeRule& charges, const std::string& hidden,
                   const ExportFacts& facts) {
  const auto put = [this](std::string_view bytes) { bytes_->write(bytes); };
  const std::string sampling =
      facts.header.sampled() == 0 ? "" : "estimates from " + command::sampling_text(facts.header);
  switch (options_.form) {
    case ExportForm::none:
      return;
    case ExportForm::folded:
      return write_folded(stacks, uses, options_.metric, hidden,
                          [&](const std::string& text) { command::print(below("[" + sampling + "]", text)); });
    case ExportForm::pprof:
      write_pprof(stacks, uses, charges, hidden, facts.header, facts.comments, put);
      break;
    case ExportForm::speedscope:
      write_speedscope(stacks, uses, hidden, facts.name + (sampling.empty() ? "" : ", " + sampling), put);
      break;
  }
  bytes_->finish();
  file_->commit();
}

}  // namespace cmt::lifetimes
