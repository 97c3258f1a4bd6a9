#include "lifetimes/commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "command/command_line.h"
#include "command/trace_input.h"
#include "heap/annotated_text.h"
#include "lifetimes/annotate.h"
#include "lifetimes/counts.h"
#include "lifetimes/report.h"
#include "lifetimes/summarise.h"

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

}  // namespace

void annotate(const Options& options) {
  Trace trace(options, true);
  heap::AnnotatedText out(STDOUT_FILENO);
  Annotator annotator(options.paths.front(), {options.clock, options.totals}, out, trace.complaints());
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
  Summariser summariser(options.paths.front(), options.clock, trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { summariser.add(event); });
  print_as(options.form, summariser.finish(trace.truncated()));
  trace.complaints().end();
}

void count(const Options& options) {
  Trace trace(options, false);
  PairCounter counter(options.paths.front(), options.clock, trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { counter.add(event); });
  command::print(counter.to_text());
  trace.complaints().end();
}

void merge(const Options& options) {
  Summary sum = read_json(options.paths.front());
  for (std::size_t i = 1; i < options.paths.size(); ++i) {
    const Summary other = read_json(options.paths[i]);
    if (other.clock != sum.clock) {
      throw FormatError(options.paths[i], "its lifetimes are by another clock than those of " + options.paths.front());
    }
    sum.merge(other);
  }
  print_as(options.form, sum);
}

void say(const std::string& words) { std::fprintf(stderr, "lifetimes: %s\n", words.c_str()); }

}  // namespace cmt::lifetimes
