#include "options.h"

namespace trace2cmt {

using cmt::command::CommandLine;
using cmt::command::Option;
using cmt::command::UsageError;

const char* const help_text =
    "Usage: trace2cmt [OPTION]... [FILE]\n"
    "Convert a trace of memory allocations: text, .cmt or legacy .cmt in, .cmt or text out.\n"
    "FILE is - or missing: standard input.\n"
    "\n"
    "  -o, --output=OUT    write to OUT instead of standard output\n"
    "      --to=FORMAT     cmt (the default) or text\n"
    "  -s, --text          the same as --to=text\n"
    "      --level=N       of compression with zstd, 1 to 19 (default 3)\n"
    "      --strict        stop at the first line or event that is wrong, instead of counting it\n"
    "  -h, --help          print this and exit\n"
    "      --version       print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 could not, 2 wrong use.\n";

const std::vector<Option> known_options{{"output", Option::Takes::value, 'o'},
                                        {"to", Option::Takes::value},
                                        {"text", Option::Takes::nothing, 's'},
                                        {"level", Option::Takes::value},
                                        {"strict"}};

Options options_of(const CommandLine& line) {
  Options options;
  options.input = line.file();
  options.output = line.value("output", "-");
  options.level = static_cast<int>(line.number("level", 3, 1, 19));
  options.strict = line.has("strict");
  const std::string to = line.value("to", line.has("text") ? "text" : "cmt");
  if (to != "cmt" && to != "text") throw UsageError("--to is cmt or text, not '" + to + "'");
  if (line.has("text") && to != "text") throw UsageError("-s is --to=text, and --to=" + to + " is given too");
  options.to = to == "cmt" ? cmt::Format::cmt : cmt::Format::text;
  return options;
}

}  // namespace trace2cmt
