// Chooses the parser of an input: the one that --from names, else the one that recognises its content.

#include "toolkit/logs/log_source.h"

#include <map>
#include <set>

#include "libcmt/format/coding.h"
#include "libcmt/trace/file/cmt_source.h"
#include "libcmt/trace/file/legacy_source.h"
#include "libcmt/trace/lines/line_source.h"
#include "libcmt/trace/lines/text_source.h"

namespace cmt::logs {
namespace {

constexpr std::string_view text_name = "text", cmt_name = "cmt", legacy_name = "legacy";

/// The source of a Reader that reads a log of another tool.
class LogSource : public LineSource {
 public:
  LogSource(std::unique_ptr<Input> input, DefectLog& log, const LogFormat& format, ParsedLog parsed, const From& from,
            const ReadOptions& options)
      : LineSource(std::move(input), log, options.threads, nullptr),
        parsed_(std::move(parsed)),
        parser_(format.make_parser()),
        ends_lines_(format.ends_lines),
        is_strict_(options.strict),
        offers_pid_(from.offers_pid),
        left_out_(from.left_out) {
    header_.format = Format::text;
    if (options.stacks) parsed_.use_stacks(stacks_);
    read_ahead();
    header_.has_stacks = options.stacks && (format.has_stacks || stacks_.node_count() > 1);
    header_.metadata = parsed_.metadata();
    if (!header_.find("recorder")) header_.metadata.emplace_back("recorder", format.recorder);
    if (parsed_.names_only()) header_.has_addresses = false;
  }

  /// The processes so far. With ParsedLog::of_processes() these are all of the log's: no event stops the reading.
  const std::set<std::uint64_t>& processes() const { return parsed_.processes(); }

 private:
  void take(std::string_view line) override {
    parsed_.next_line();
    try {
      parser_->parse(line, parsed_);
    } catch (const SeveralProcesses& several) {
      if (!offers_pid_)
        throw FormatError(place(), std::string(several.what()) + ": trace2cmt --pid=N converts one of them");
      throw SeveralProcesses(place() + ": " + several.what() +
                             ": choose one with --pid=N, or name an output for a file of each with -o");
    } catch (const UnknownFormat& unknown) {
      throw FormatError(place(), unknown.what());
    }
    report(line);
  }

  bool has_understood() const override { return any_event() || parsed_.has_others(); }

  /// The rest of a line that was cut off could be a valid line: an address or a size with its first digits only.
  void take_last(std::string_view line) override {
    if (!ends_lines_) return take(line);
    truncated_ = true;
    if (is_strict_) wrong("the line is cut off");
  }

  void end() override {
    parsed_.next_line();
    parser_->end(parsed_);
    report("(end)");
    for (const auto& [kind, count] : parsed_.left_out()) {
      if (left_out_ != nullptr) (*left_out_)[kind] += count;
    }
    if (parsed_.chosen_pid() && !parsed_.has_any()) {
      throw FormatError(input_->name(), "process " + std::to_string(*parsed_.chosen_pid()) + " is not in this log");
    }
    if (!has_call_ && !parsed_.chosen_pid() && parsed_.processes().empty() && !parsed_.left_out().empty()) {
      throw FormatError(input_->name(),
                        "no call of the allocator is in this log, but " + list_kinds(parsed_.left_out()));
    }
  }

  void report(std::string_view line) {
    if (parsed_.names_only()) leave_out_addresses();
    if (!parsed_.expected().empty()) {
      wrong("expected " + std::string(parsed_.expected()) + ": " + std::string(line.substr(0, 80)));
    }
    for (const Event& event : parsed_.events()) {
      has_call_ |= event.kind != Kind::thread_exit && event.kind != Kind::sample;
      add(event, {});
    }
  }

  ParsedLog parsed_;
  std::unique_ptr<LogParser> parser_;
  const bool ends_lines_, is_strict_, offers_pid_;
  LeftOut* left_out_;
  bool has_call_ = false;
};

/// Opens a trace in the form of our own that --from names.
std::unique_ptr<Source> open_own_form(std::string_view name, std::unique_ptr<Input> input, const ReadOptions& options,
                                      DefectLog& log) {
  const std::string_view start = input->peek(format::longest_start);
  const bool is_cmt = start.starts_with(format::magic);
  if (name == cmt_name && !is_cmt) throw FormatError(input->name(), "not a .cmt");
  if (name == legacy_name && !is_legacy(start)) {
    throw FormatError(input->name(), "not a .cmt of 2019");
  }
  if (name != text_name) return choose_source(std::move(input), options, log);
  require_text(*input);
  return std::make_unique<TextSource>(std::move(input), options, log);
}

const LogFormat* format_of(Input& input, const std::string& name) {
  if (!name.empty()) return find_log_format(name);
  if (input.peek(format::longest_start).starts_with(format::magic)) return nullptr;
  std::string_view start = input.peek(recognition_bytes).substr(0, recognition_bytes);
  if (start.starts_with(byte_order_mark)) start.remove_prefix(byte_order_mark.size());
  // A damaged log may have NULs: recognise it by the text before the first.
  return recognise_log_format(start.substr(0, start.find('\0')));
}

}  // namespace

std::unique_ptr<Source> choose_any_source(std::unique_ptr<Input> input, const From& from, const ReadOptions& options,
                                          DefectLog& log) {
  if (const LogFormat* const format = format_of(*input, from.format)) {
    return std::make_unique<LogSource>(std::move(input), log, *format, ParsedLog(from.pid), from, options);
  }
  const std::string name = input->name();
  auto source = from.format.empty() ? choose_source(std::move(input), options, log)
                                    : open_own_form(from.format, std::move(input), options, log);
  if (!from.pid) return source;
  const auto pid = source->header().find("pid");
  if (!pid) throw FormatError(name, "the trace has no process id (needed by --pid)");
  if (*pid != std::to_string(*from.pid)) {
    throw FormatError(name, "process " + std::to_string(*from.pid) + " is not in this trace");
  }
  return source;
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names{text_name, cmt_name, legacy_name};
  for (const LogFormat& format : log_formats()) names.push_back(format.name);
  return names;
}

std::vector<std::uint64_t> processes_in(std::unique_ptr<Input> input, const std::string& format) {
  const LogFormat* const found = format_of(*input, format);
  if (found == nullptr) return {};
  const ReadOptions options;
  DefectLog log(options);
  const LogSource source(std::move(input), log, *found, ParsedLog::of_processes(), {}, options);
  return {source.processes().begin(), source.processes().end()};
}

}  // namespace cmt::logs
