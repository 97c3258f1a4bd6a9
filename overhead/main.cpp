// overhead: where blocks lie. Reads events, annotates those that make or end a block, writes them as text.

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "cmt/reader.h"
#include "cmt/text.h"
#include "heap/annotated_text.h"
#include "heap/complaints.h"
#include "overhead/annotate.h"
#include "overhead/options.h"

namespace {

void say(const std::string& words) { std::fprintf(stderr, "overhead: %s\n", words.c_str()); }

/// The line that an event is shown as: the input's own, or else the canonical one, which `own` holds.
std::string_view line_of(const cmt::Reader& reader, std::size_t i, const cmt::Event& event, std::string& own) {
  const std::string_view line = reader.line(i);
  if (!line.empty()) return line;
  own.clear();
  cmt::append_line(own, event);
  return own;
}

void annotate_all(cmt::Reader& reader, OverheadAnnotator& annotator) {
  std::string own;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (std::size_t i = 0; i < events.size(); ++i) annotator.add(events[i], line_of(reader, i, events[i], own));
  }
}

void need_clock(const Options& options, const cmt::Reader& reader) {
  if (options.annotation.clock != cmt::heap::Clock::Unit::time || reader.header().has_times) return;
  throw cmt::FormatError(options.path, "times were not recorded: --clock=time has nothing to count");
}

void annotate(const Options& options) {
  cmt::heap::Complaints complaints(options.strict, say);
  cmt::ReadOptions reading;
  reading.strict = options.strict;
  reading.on_defect = [&](const cmt::Defect& defect) { complaints.add(defect.place, defect.what); };
  cmt::Reader reader(options.path, reading);
  need_clock(options, reader);
  cmt::heap::AnnotatedText out(STDOUT_FILENO);
  OverheadAnnotator annotator(options.path, options.annotation, out, complaints);
  try {
    annotate_all(reader, annotator);
    if (options.leaks) annotator.append_leaks();
  } catch (const cmt::FormatError&) {
    out.flush();
    throw;
  }
  out.flush();
  if (reader.truncated()) say(options.path + ": breaks off before its end");
  complaints.end();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const Options options = parse_options(argc, argv);
    if (options.help) return std::fputs(help_text, stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
    if (options.version) return std::puts("overhead " CMT_VERSION) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
    annotate(options);
    return 0;
  } catch (const UsageError& error) {
    say(error.what());
    std::fputs("Try 'overhead --help' for more information.\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}
