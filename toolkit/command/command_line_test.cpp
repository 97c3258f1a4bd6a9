// Checks how options, operands, durations and errors of a command line are read and reported.

#include "toolkit/command/command_line.h"

#include <doctest/doctest.h>

using cmt::command::CommandLine;
using cmt::command::Option;
using cmt::command::UsageError;

namespace {

const std::vector<Option> options{{"output", Option::Takes::value, 'o'}, {"alloc", Option::Takes::values}, {"strict"}};

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tool");
  return CommandLine(static_cast<int>(arguments.size()), arguments.data(), options);
}

}  // namespace

TEST_CASE("command line: options, values and files are distinguished") {
  const CommandLine line = parse({"--strict", "-o", "x y", "--alloc=a", "in", "--alloc", "b"});
  CHECK(line.has("strict"));
  CHECK(line.value("output", "-") == "x y");
  CHECK(line.values("alloc") == std::vector<std::string>{"a", "b"});
  CHECK(line.file() == "in");
}

TEST_CASE("command line: an option that is not given has its default") {
  const CommandLine line = parse({});
  CHECK_FALSE(line.has("strict"));
  CHECK(line.value("output", "-") == "-");
  CHECK(line.number("output", 5, 1, 9) == 5);
  CHECK(line.file() == "-");
}

TEST_CASE("command line: a file may be named - or follow --") {
  CHECK(parse({"-"}).file() == "-");
  CHECK(parse({"--", "--strict"}).file() == "--strict");
}

TEST_CASE("command line: wrong use is refused") {
  CHECK_THROWS_AS(parse({"--wrong"}), UsageError);
  CHECK_THROWS_AS(parse({"--str"}), UsageError);
  CHECK_THROWS_AS(parse({"-x"}), UsageError);
  CHECK_THROWS_AS(parse({"--output"}), UsageError);
  CHECK_THROWS_AS(parse({"--strict=yes"}), UsageError);
  CHECK_THROWS_AS(parse({"-o", "a", "-o", "b"}), UsageError);
  CHECK_THROWS_AS(parse({"a", "b"}).file(), UsageError);
}

TEST_CASE("command line: a mistyped option or word of a list is answered with the closest") {
  CHECK_THROWS_WITH_AS(parse({"--outptu=x"}), "unrecognised option '--outptu=x'; did you mean '--output'?", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--hlep"}), "unrecognised option '--hlep'; did you mean '--help'?", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--nonsense=x"}), "unrecognised option '--nonsense=x'", UsageError);
  CHECK_THROWS_WITH_AS(parse({"-x"}), "unrecognised option '-x'", UsageError);
  const CommandLine line = parse({"-o", "tme"});
  CHECK_THROWS_WITH_AS(line.word("output", {"events", "time", "bytes"}),
                       "--output: expected events, time or bytes, not 'tme'; did you mean 'time'?", UsageError);
  CHECK(parse({}).word("output", {"events", "time"}) == "events");
  CHECK_THROWS_WITH_AS(cmt::command::refuse_value("thread", "a list of threads, as 0,3", "lits"),
                       "--thread: expected a list of threads, as 0,3, not 'lits'", UsageError);
}

TEST_CASE("command line: a number has to be whole and within its bounds") {
  CHECK(parse({"-o", "7"}).number("output", 0, 1, 9) == 7);
  for (const char* wrong : {"", "x", "7x", "-1", "0", "10", "99999999999999999999"}) {
    CHECK_THROWS_AS(parse({"-o", wrong}).number("output", 0, 1, 9), UsageError);
  }
}

TEST_CASE("command line: a value that cannot be read is refused with what is wanted") {
  const auto length = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text.size()); };
  CHECK(parse({"-o", "abc"}).parsed("output", "", "some text", length) == 3);
  CHECK(parse({}).parsed("output", "ab", "some text", length) == 2);
  CHECK_THROWS_WITH_AS(parse({"-o", ""}).parsed("output", "ab", "some text", length),
                       "--output: expected some text, not ''", UsageError);
}

namespace {

std::vector<std::string> command_of(std::vector<const char*> words) {
  words.insert(words.begin(), "tool");
  const std::vector<Option> known{{"interval", Option::Takes::value, 'i'}, {"recursive", Option::Takes::nothing, 'r'}};
  return CommandLine(static_cast<int>(words.size()), words.data(), known, CommandLine::Operands::command).files();
}

}  // namespace

TEST_CASE("command line: a command begins at the first word that is no option, and keeps its own options") {
  CHECK(command_of({"-r", "-i", "5", "ls", "-r", "--color"}) == std::vector<std::string>{"ls", "-r", "--color"});
  CHECK(command_of({"--interval=5", "ls"}) == std::vector<std::string>{"ls"});
  CHECK(command_of({"--interval", "5", "-", "x"}) == std::vector<std::string>{"-", "x"});
  CHECK(command_of({"-i5", "ls"}) == std::vector<std::string>{"ls"});
}

TEST_CASE("command line: a command begins after two dashes, whatever its name") {
  CHECK(command_of({"-r", "--", "-x", "--"}) == std::vector<std::string>{"-x", "--"});
  CHECK(command_of({"-r"}).empty());
}

TEST_CASE("command line: an optional value follows an equals sign, and the next word is no value") {
  const std::vector<Option> known{{"trace", Option::Takes::value_or_nothing}};
  const auto value = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "tool");
    const CommandLine line(static_cast<int>(words.size()), words.data(), known, CommandLine::Operands::command);
    return (line.has("trace") ? line.value("trace", "none") : "not given") + " " + std::to_string(line.files().size());
  };
  const char* const before_file[] = {"tool", "--trace", "a.cmt", "--", "--trace"};
  const CommandLine files(5, before_file, known);
  CHECK(files.has("trace"));
  CHECK(files.value("trace", "none") == "none");
  CHECK(files.files() == std::vector<std::string>{"a.cmt", "--trace"});
  CHECK(value({"--trace=a.cmt", "ls"}) == "a.cmt 1");
  CHECK(value({"--trace", "ls", "-l"}) == "none 2");
  CHECK(value({"ls"}) == "not given 1");
  CHECK_THROWS_WITH_AS(value({"--trace=a", "--trace=b", "ls"}), "--trace is given twice", UsageError);
}

TEST_CASE("command line: a value that is checked is wrong use where it has a fault") {
  const char* const words[] = {"tool", "--plot=a.gif"};
  const CommandLine line(2, words, {{"plot", Option::Takes::value}, {"map", Option::Takes::value}});
  CHECK(line.checked("map", [](const std::string&) { return "never asked"; }).empty());
  CHECK(line.checked("plot", [](const std::string&) { return ""; }) == "a.gif");
  CHECK_THROWS_WITH_AS(line.checked("plot", [](const std::string& text) { return "not " + text; }), "--plot: not a.gif",
                       UsageError);
}

TEST_CASE("duration: a number and a unit") {
  CHECK(cmt::command::parse_duration("250ms") == 250'000'000);
  CHECK(cmt::command::parse_duration("1.5s") == 1'500'000'000);
  CHECK(cmt::command::parse_duration("10us") == 10'000);
  CHECK(cmt::command::parse_duration("2min") == 120'000'000'000);
}

TEST_CASE("size: a number above 0 with a unit of 1,024, up to a tebibyte") {
  CHECK(cmt::command::parse_size("524288") == 524288);
  CHECK(cmt::command::parse_size("512K") == 524288);
  CHECK(cmt::command::parse_size("3MiB") == 3 << 20);
  CHECK(cmt::command::parse_size("1024G") == std::uint64_t{1} << 40);
  for (const char* const wrong : {"", "0", "K", "5X", "5Ki", "1025G", "-1", "1.5M"})
    CHECK_FALSE(cmt::command::parse_size(wrong).has_value());
}

TEST_CASE("duration: only 0 needs no unit") {
  CHECK_FALSE(cmt::command::parse_duration("10").has_value());
  CHECK(cmt::command::parse_duration("0") == 0);
  const CommandLine line = parse({"-o", "10"});
  CHECK_THROWS_WITH_AS(line.parsed("output", "", "a time such as 2s", cmt::command::parse_duration),
                       "--output: expected a time such as 2s, not '10'; its unit is missing", UsageError);
}

TEST_CASE("duration: any other text is refused") {
  for (const char* wrong : {"", "ms", "-1s", "-0s", "1 s", "1e3s", "nan", "inf", "5parsecs", "99999999999999h"}) {
    CHECK_FALSE(cmt::command::parse_duration(wrong).has_value());
  }
}
