// trace2cmt: any trace in, .cmt or text out.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "anonymise.h"
#include "filter.h"
#include "info.h"
#include "inputs.h"
#include "open_log.h"
#include "options.h"
#include "output_file.h"
#include "repair_words.h"
#include "sink.h"
#include "slice.h"
#include "thread_choice.h"
#include "toolkit/command/complaints.h"
#include "verify.h"

namespace {

using namespace trace2cmt;

void say(const std::string& line) { std::fprintf(stderr, "trace2cmt: %s\n", line.c_str()); }

void say_what_was_done(const Inputs& inputs, const cmt::Totals& totals, const cmt::Repairs& repairs) {
  for (const std::string& path : inputs.truncated_files()) {
    say("warning: " + path + ": the trace breaks off; all that is whole was read");
  }
  if (repairs.total() == 0) return;
  say(std::to_string(totals.events) + " events, " + std::to_string(repairs.total()) +
      (repairs.total() == 1 ? " repair" : " repairs") + repairs_by_kind(repairs));
}

std::vector<std::unique_ptr<Filter>> filters_of(const Options& options) {
  std::vector<std::unique_ptr<Filter>> filters;
  if (options.slice) filters.push_back(std::make_unique<Slice>(*options.slice));
  if (!options.threads.empty()) filters.push_back(std::make_unique<ThreadChoice>(options.threads));
  if (options.anonymise) filters.push_back(std::make_unique<Anonymise>());
  return filters;
}

void convert(const Options& options) {
  if (options.output == "-" && is_binary(options.to) && isatty(STDOUT_FILENO)) {
    const std::string form = options.to == To::parquet ? "Parquet file" : ".cmt";
    throw std::runtime_error("will not write a " + form + " to a terminal; redirect it, or use -o or -s");
  }
  cmt::command::Complaints complaints(options.strict, say);
  cmt::ReadOptions read_options;
  read_options.strict = options.strict;
  read_options.on_defect = [&](const cmt::Defect& defect) { complaints.add(defect.place, defect.what); };
  Inputs inputs(options.inputs, options.from, read_options);
  OutputFile output(options.output);

  std::unique_ptr<Sink> sink;
  cmt::Repairs refused;
  Filters filters(filters_of(options), [&](const cmt::Event& event) {
    if (sink->add(event)) return;
    refused.add(cmt::Repair::contradiction);
    complaints.add(inputs.place(), "its tag contradicts the events before: dropped");
  });
  cmt::Header header = inputs.header();
  filters.change(header);
  sink = make_sink(output.fd(), std::move(header), options, say);
  inputs.read([&](const cmt::Event& event) { return filters.add(event), !filters.done(); });
  filters.finish();
  const cmt::Repairs repairs = inputs.repairs() += refused;
  sink->finish(repairs, inputs.truncated());
  output.commit();
  say_what_was_done(inputs, sink->totals(), repairs);
}

/// Several processes of one log become a file each, where there is a name to give to them and the log can be read
/// again.
void convert_processes(Options options) {
  try {
    return convert(options);
  } catch (const SeveralProcesses&) {
    if (options.output == "-" || options.inputs.size() > 1 || !can_be_read_again(options.inputs[0])) throw;
  }
  const std::filesystem::path output = options.output;
  for (const std::uint64_t pid : processes_in(options.inputs[0], options.from)) {
    options.from.pid = pid;
    options.output = output.parent_path() / (output.stem().string() + "." + std::to_string(pid));
    options.output += output.extension();
    say(options.output + ": process " + std::to_string(pid));
    convert(options);
  }
}

int verify_and_say(const TraceFile& file) {
  const Verdict verdict = verify(file, [](const std::string& fault) { cmt::command::print(fault + "\n"); });
  if (verdict.faults == 0) cmt::command::print(file.name() + ": ok, " + verdict.checked + "\n");
  return verdict.faults == 0 ? 0 : 1;
}

int run(const Options& options) {
  switch (options.task) {
    case Options::Task::convert:
      convert_processes(options);
      return 0;
    case Options::Task::info: {
      const Info info = info_of({options.inputs.front(), options.from});
      cmt::command::print(options.json ? to_json(info) : to_text(info));
      return 0;
    }
    case Options::Task::verify:
      return verify_and_say({options.inputs.front(), options.from});
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  return cmt::command::run(argc, argv,
                           {"trace2cmt", CMT_VERSION, help_text, known_options,
                            [](const cmt::command::CommandLine& line) { return run(options_of(line)); }});
}
