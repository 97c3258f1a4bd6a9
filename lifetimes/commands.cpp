#include "lifetimes/commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

#include "lifetimes/annotate.h"
#include "lifetimes/counts.h"
#include "lifetimes/report.h"
#include "lifetimes/summarise.h"
#include "toolkit/annotate/annotated_text.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/trace_input.h"
#include "toolkit/picture/picture_file.h"

namespace cmt::lifetimes {
namespace {

/// The trace that the options name.
struct Trace : command::TraceInput {
  Trace(const Options& options, bool addresses)
      : TraceInput(options.paths.front(), {.strict = options.strict, .addresses = addresses}, say) {
    if (options.clock == heap::Clock::Unit::time) require_times("--clock=time");
  }
};

void print_as(Options::Form form, const Summary& summary) {
  switch (form) {
    case Options::Form::text:
      return command::print(to_text(summary));
    case Options::Form::json:
      return command::print(to_json(summary));
    case Options::Form::csv:
      return command::print(to_csv(summary));
  }
}

/// The file of --plot, opened before the work begins.
class Plot {
 public:
  explicit Plot(const Options& options) : path_(options.plot) {
    if (!path_.empty()) file_.emplace(path_);
  }

  void write(const Summary& summary) {
    if (!file_) return;
    file_->write(to_picture(summary), to_json(summary));
    if (!file_->remark().empty()) say(path_ + ": " + std::string(file_->remark()));
  }

 private:
  std::string path_;
  std::optional<output::PictureFile> file_;
};

void answer(const Options& options, const Summary& summary, Plot& plot) {
  plot.write(summary);
  if (options.prints) print_as(options.form, summary);
}

}  // namespace

void annotate(const Options& options) {
  Trace trace(options, true);
  heap::AnnotatedText out(STDOUT_FILENO);
  Annotator annotator({options.clock, options.totals}, out, trace.complaints());
  try {
    trace.for_each([&](const Event& event, std::size_t i) { annotator.add(event, trace.line(event, i)); });
    if (options.leaks) annotator.append_leaks();
  } catch (const FormatError&) {
    out.flush();
    throw;
  }
  out.flush();
  trace.complaints().end();
}

void summarise(const Options& options) {
  Trace trace(options, false);
  Plot plot(options);
  Summariser summariser(options.paths.front(), options.clock, trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { summariser.add(event); });
  answer(options, summariser.finish(trace.truncated()), plot);
  trace.complaints().end();
}

void count(const Options& options) {
  Trace trace(options, false);
  PairCounter counter(options.clock, trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { counter.add(event); });
  command::print(counter.to_text());
  trace.complaints().end();
}

void merge(const Options& options) {
  Plot plot(options);
  Summary sum = read_json(options.paths.front());
  for (std::size_t i = 1; i < options.paths.size(); ++i) {
    const Summary other = read_json(options.paths[i]);
    if (other.clock != sum.clock) {
      throw FormatError(options.paths[i], "its lifetimes are by another clock than those of " + options.paths.front());
    }
    sum.merge(other);
  }
  answer(options, sum, plot);
}

void say(const std::string& words) { std::fprintf(stderr, "lifetimes: %s\n", words.c_str()); }

}  // namespace cmt::lifetimes
