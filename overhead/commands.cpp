#include "overhead/commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>

#include "overhead/annotate.h"
#include "overhead/report.h"
#include "overhead/summarise.h"
#include "toolkit/annotate/annotated_text.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/trace_input.h"
#include "toolkit/picture/picture_file.h"

namespace cmt::overhead {
namespace {

/// The trace that the options name.
struct Trace : command::TraceInput {
  explicit Trace(const Options& options) : TraceInput(options.path, {.strict = options.strict}, say) {
    if (options.annotation.clock == heap::Clock::Unit::time) require_times("--clock=time");
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
  Trace trace(options);
  heap::AnnotatedText out(STDOUT_FILENO);
  Annotator annotator(options.annotation, out, trace.complaints());
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
  Trace trace(options);
  std::optional<output::PictureFile> picture;
  if (!options.plot.empty()) picture.emplace(options.plot);
  Summariser summariser(options.path, options.annotation.page_shift, trace.header().has_usable, trace.complaints());
  if (picture) summariser.collect_plot();
  trace.for_each([&](const Event& event, std::size_t) { summariser.add(event); });
  const Summary summary = summariser.finish(trace.truncated());
  if (picture) {
    picture->write(to_picture(summary), to_json(summary));
    if (!picture->remark().empty()) say(options.plot + ": " + std::string(picture->remark()));
  }
  if (options.prints) print_as(options.form, summary);
  trace.complaints().end();
}

void say(const std::string& words) { std::fprintf(stderr, "overhead: %s\n", words.c_str()); }

}  // namespace cmt::overhead
