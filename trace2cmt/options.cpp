#include "options.h"

#include <getopt.h>

#include <cstdio>
#include <cstdlib>

namespace trace2cmt {

const char* const help_text =
    "Usage: trace2cmt [OPTION]... [FILE]\n"
    "Convert a trace of memory allocations: text, .cmt or legacy .cmt in, .cmt or text out.\n"
    "FILE is - or missing: standard input.\n"
    "\n"
    "  -o, --output=OUT    write to OUT instead of standard output\n"
    "      --to=FORMAT     cmt (the default) or text\n"
    "  -s                  the same as --to=text\n"
    "      --level=N       of compression with zstd, 1 to 19 (default 3)\n"
    "      --strict        stop at the first line or event that is wrong, instead of counting it\n"
    "  -h, --help          print this and exit\n"
    "      --version       print the version and exit\n"
    "\n"
    "Exit status: 0 done, 1 could not, 2 wrong use.\n";

namespace {

enum LongOption { to = 256, level, strict, version };

constexpr option long_options[] = {{"output", required_argument, nullptr, 'o'},
                                   {"to", required_argument, nullptr, to},
                                   {"level", required_argument, nullptr, level},
                                   {"strict", no_argument, nullptr, strict},
                                   {"help", no_argument, nullptr, 'h'},
                                   {"version", no_argument, nullptr, version},
                                   {nullptr, 0, nullptr, 0}};

cmt::Format parse_format(const std::string& name) {
  if (name == "cmt") return cmt::Format::cmt;
  if (name == "text") return cmt::Format::text;
  throw UsageError("--to is cmt or text, not '" + name + "'");
}

int parse_level(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 1 || value > 19) {
    throw UsageError("--level is a number from 1 to 19, not '" + std::string(text) + "'");
  }
  return static_cast<int>(value);
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":o:sh", long_options, nullptr)) != -1;) {
    switch (c) {
      case 'o':
        options.output = optarg;
        break;
      case 's':
        options.to = cmt::Format::text;
        break;
      case to:
        options.to = parse_format(optarg);
        break;
      case level:
        options.level = parse_level(optarg);
        break;
      case strict:
        options.strict = true;
        break;
      case 'h':
        std::fputs(help_text, stdout);
        return std::nullopt;
      case version:
        std::puts("trace2cmt " CMT_VERSION);
        return std::nullopt;
      case ':':
        throw UsageError("option '" + std::string(argv[optind - 1]) + "' needs a value");
      default:
        throw UsageError("unknown option '" + std::string(argv[optind - 1]) + "'");
    }
  }
  if (argc - optind > 1) throw UsageError("one FILE at most");
  if (optind < argc) options.input = argv[optind];
  return options;
}

}  // namespace trace2cmt
