#include "toolkit/annotate/trace_tool.h"

#include <algorithm>

#include "cmt/text.h"
#include "libcmt/text/utf8.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"

namespace cmt::annotate {

std::vector<command::Option> known_options(std::vector<command::Option> own) {
  const auto value = command::Option::Takes::value;
  const std::vector<command::Option> shared{{"clock", value}, {"csv"},    {"json"},    {"leaks"},
                                            {"plot", value},  {"strict"}, {"summary"}, {"totals"}};
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

Options parse_options(const std::string& tool, const command::CommandLine& line,
                      std::initializer_list<const char*> annotation_only) {
  for (const char* const form : {"json", "csv", "summary", "plot"}) line.refuse_together(form, annotation_only);
  line.refuse_together("json", {"csv"});
  Options options{.tool = tool};
  const bool prints = line.has("summary") || line.has("json") || line.has("csv");
  options.clock = line.parsed("clock", "events", "events, time or bytes", heap::Clock::parse);
  options.leaks = line.has("leaks");
  options.totals = line.has("totals");
  options.strict = line.has("strict");
  options.plot = line.checked("plot", output::PictureFile::fault_of);
  options.summarises = prints || !options.plot.empty();
  options.prints = prints || options.plot.empty();
  if (line.has("json")) options.form = Options::Form::json;
  if (line.has("csv")) options.form = Options::Form::csv;
  return options;
}

Trace::Trace(const Options& options, bool addresses, bool stacks)
    : options_(options),
      complaints_(options.strict, [this](const std::string& message) { say(message); }),
      reader_(command::open_trace(
          options.path, {.strict = options.strict,
                         .addresses = addresses,
                         .addresses_of_touched = true,
                         .stacks = stacks,
                         .on_defect = [this](const Defect& defect) { complaints_.add(defect.place, defect.what); }})) {
  complaints_.set_place([this] { return place(); });
  if (options.clock == heap::Clock::Unit::time && !header().has_times)
    throw FormatError(options.path, "times were not recorded (needed by --clock=time)");
}

/// While a thread reads ahead, its reader is not to be asked.
std::string Trace::place() const {
  if (!first_ahead_) return reader_.place(current_);
  return name() + ": event " + std::to_string(*first_ahead_ + current_ + 1);
}

std::string Trace::name() const { return options_.path == "-" ? "standard input" : options_.path; }

void Trace::say_what_is_missing() const {
  if (truncated()) say(name() + ": breaks off before its end");
  if (is_empty_ && !truncated()) say(name() + ": the trace is empty");
}

std::string_view Trace::line(const Event& event, std::size_t i) {
  const std::string_view line = reader_.line(i);
  if (!line.empty() && text::is_plain(line)) return line;
  own_line_.clear();
  append_line(own_line_, event);
  return own_line_;
}

AnnotatedText::AnnotatedText(int fd)
    : out_(fd), buffer_(std::make_unique_for_overwrite<char[]>(capacity)), at_(buffer_.get()) {}

void AnnotatedText::flush() {
  const std::string_view collected(buffer_.get(), static_cast<std::size_t>(at_ - buffer_.get()));
  at_ = buffer_.get();
  out_.write(collected);
}

std::string block_text(const heap::PlacedBlock& block) {
  return output::hex(block.address) + "<" + std::to_string(block.tag) + ">";
}

void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock) {
  std::sort(blocks.begin(), blocks.end(),
            [](const heap::PlacedBlock& a, const heap::PlacedBlock& b) { return a.tag < b.tag; });
  for (const heap::PlacedBlock& block : blocks) {
    out.begin_line("# leak: ");
    if (block.address != 0) out.hex(block.address);
    out.text("<");
    out.decimal(block.tag);
    out.text(">, ");
    out.block_age(block.size, block.born, clock);
    out.text(" before the end");
    out.end_line();
  }
}

SummaryOutput::SummaryOutput(const Options& options) : options_(options) {
  if (!options.plot.empty()) picture_.emplace(options.plot);
}

void SummaryOutput::write_picture(const output::Picture& picture, const std::string& numbers) {
  picture_->write(picture, numbers);
  if (picture_->remark().empty()) return;
  command::complain(options_.tool, options_.plot + ": " + std::string(picture_->remark()));
}

}  // namespace cmt::annotate
