#include "overhead/commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cmt/reader.h"
#include "cmt/text.h"
#include "command/complaints.h"
#include "heap/annotated_text.h"
#include "overhead/annotate.h"
#include "overhead/report.h"
#include "overhead/summarise.h"

namespace cmt::overhead {
namespace {

/// A trace that is being read, with what is wrong with it.
class Trace {
 public:
  explicit Trace(const Options& options)
      : path_(options.path),
        complaints_(options.strict, say),
        reader_(path_, {.strict = options.strict,
                        .on_defect = [this](const Defect& defect) { complaints_.add(defect.place, defect.what); }}) {
    if (options.annotation.clock == heap::Clock::Unit::time && !reader_.header().has_times) {
      throw FormatError(path_, "times were not recorded: --clock=time has nothing to count");
    }
  }

  /// Calls `visit` with every event and its place in the batch.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto events = reader_.read(); !events.empty(); events = reader_.read()) {
      for (std::size_t i = 0; i < events.size(); ++i) visit(events[i], i);
    }
    if (reader_.truncated()) say(path_ + ": breaks off before its end");
  }

  /// The line that an event is shown as: the input's own, or else the canonical one. Valid until the next call.
  std::string_view line(const Event& event, std::size_t i) {
    const std::string_view line = reader_.line(i);
    if (!line.empty()) return line;
    own_.clear();
    append_line(own_, event);
    return own_;
  }

  command::Complaints& complaints() { return complaints_; }
  bool has_usable() const { return reader_.header().has_usable; }
  bool truncated() const { return reader_.truncated(); }

 private:
  std::string path_;
  std::string own_;
  command::Complaints complaints_;
  Reader reader_;
};

void print_as(Options::Form form, const Summary& summary) {
  switch (form) {
    case Options::Form::text:
      return print(to_text(summary));
    case Options::Form::json:
      return print(to_json(summary));
    case Options::Form::csv:
      return print(to_csv(summary));
  }
}

}  // namespace

void annotate(const Options& options) {
  Trace trace(options);
  heap::AnnotatedText out(STDOUT_FILENO);
  Annotator annotator(options.path, options.annotation, out, trace.complaints());
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
  Summariser summariser(options.path, options.annotation.page_shift, trace.has_usable(), trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { summariser.add(event); });
  print_as(options.form, summariser.finish(trace.truncated()));
  trace.complaints().end();
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category(), "writing");
}

void say(const std::string& words) { std::fprintf(stderr, "overhead: %s\n", words.c_str()); }

}  // namespace cmt::overhead
