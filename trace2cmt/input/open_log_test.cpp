// Logs of other tools through a Reader: recognition, processes, names, and damage.

#include "trace2cmt/input/open_log.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/format-spec/trace_fixture.h"
#include "tests/sampled_places.h"
#include "trace2cmt/inspect/verify.h"
#include "trace2cmt/options.h"

namespace cmt::trace2cmt {
namespace {

std::vector<std::string> lines_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Drops, doubles and swaps random lines: mostly near ones, as in the logs of a busy program.
std::string damaged(std::vector<std::string> lines, unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&] { return random() % lines.size(); };
  for (std::size_t left = 1 + lines.size() / (2 + random() % 20); left > 0 && lines.size() > 2; --left) {
    const std::size_t at = any();
    const std::size_t other = random() % 2 == 0 ? any() : std::min(lines.size() - 1, at + 1 + random() % 3);
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 3) {
      case 0:
        lines.erase(place);
        break;
      case 1:
        lines.insert(place, lines[other]);
        break;
      default:
        std::swap(lines[at], lines[other]);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Overwrites a few bytes here and there, and cuts off the end.
std::string overwritten(const std::vector<std::string>& lines, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (int places = 3; places > 0; --places) {
    const std::string bytes = std::string("\0\n\t (#x9\xff", 9).substr(random() % 9, 1 + random() % 4);
    text.replace(random() % text.size(), bytes.size(), bytes);
  }
  text.resize(text.size() - random() % std::min<std::size_t>(text.size(), 100));
  return text;
}

/// The faults that `trace2cmt --verify` finds in the output of `trace2cmt -s` for a log; "" for a log that is refused.
std::string faults_after(const std::string& log, const std::string& format) {
  const int in = cmt::fixture::file_of(log), out = cmt::fixture::file_of("");
  std::string faults;
  try {
    cmt::Reader reader = open_log(in, "log", {.format = format, .pid = {}}, {});
    cmt::Writer writer(out, reader.header(), {.format = cmt::Format::text});
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const cmt::Event& event : events)
        faults += writer.add(event) ? "" : "refused: " + cmt::to_line(event) + "\n";
    }
    writer.finish(reader.repairs(), reader.truncated());
    const TraceFile file("/proc/self/fd/" + std::to_string(out), {});
    verify(file, 1, [&](const std::string&, const std::string& what, std::uint64_t) { faults += what + "\n"; });
  } catch (const cmt::FormatError&) {
  } catch (const SeveralProcesses&) {
  }
  close(out);
  return faults;
}

/// A program of three threads in our own text form, with times, and with tags or without.
std::vector<std::string> busy_text(bool has_tags) {
  std::mt19937 random(5);
  std::vector<std::string> lines;
  std::vector<cmt::Event> live;
  std::uint64_t time_ns = 0;
  cmt::Tag tag = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto thread = static_cast<std::uint32_t>(random() % 3);
    cmt::Event event{.kind = cmt::Kind::free, .thread = thread, .time_ns = time_ns += random() % 900};
    const std::uint64_t place = random() % 40;
    const auto found = std::find_if(live.begin(), live.end(), [&](const auto& each) { return each.size == place; });
    if (found != live.end()) {
      event.old_address = found->address;
      event.old_tag = found->tag;
      live.erase(found);
    } else {
      event.kind = cmt::Kind::malloc;
      event.address = 0x10000 + 64 * place;
      event.tag = has_tags ? ++tag : 0;
      live.push_back(event);
      live.back().size = place;
      event.size = 1 + random() % 64;
    }
    lines.push_back(cmt::to_line(event));
  }
  return lines;
}

}  // namespace

TEST_CASE(
    "logs: whatever is dropped, doubled, swapped, overwritten or cut off, what is made of a log passes --verify") {
  const auto check = [](const std::vector<std::string>& lines, const std::string& name, const std::string& format) {
    for (unsigned seed = 0; seed < 10; seed += cmt::fixture::place_step) {
      CAPTURE(name);
      CAPTURE(seed);
      CHECK(faults_after(damaged(lines, seed), format).empty());
      CHECK(faults_after(overwritten(lines, seed), format).empty());
    }
  };
  for (const auto& entry : std::filesystem::directory_iterator(CMT_SAMPLES)) {
    const std::string name = entry.path().stem();
    const bool is_log = entry.path().extension() == ".log";
    check(lines_of_file(entry.path()), entry.path().filename(), is_log ? name.substr(0, name.find('_')) : "text");
  }
  check(busy_text(true), "text with tags", "text");
  check(busy_text(false), "text without tags", "text");
}

TEST_CASE("logs: a last line without its end is left out, unless people write the format") {
  const auto read = [](const std::string& log, bool strict = false) {
    cmt::Reader reader = open_log(cmt::fixture::file_of(log), "log", {}, {.strict = strict});
    std::string text;
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const cmt::Event& event : events) text += cmt::to_line(event) + "\n";
    }
    return text + (reader.truncated() ? "cut" : "whole");
  };
  const std::string android = "1: malloc 0x10 8\n1: malloc 0x20 64";
  CHECK(read(android) == "malloc(8) = 10<1>\ncut");
  CHECK(read(android + "\n") == "malloc(8) = 10<1>\nmalloc(64) = 20<2>\nwhole");
  CHECK_THROWS_WITH_AS(read(android, true), "log:2: the line is cut off", cmt::FormatError);
  CHECK(read("9\n9\n9\n1\na 0 512\nf 0") == "malloc(512) = <1>\nfree(<1>)\nwhole");
}

TEST_CASE("logs: bytes of 0 are no reason not to know a log, nor to stop reading it") {
  const std::string nuls(40'000, '\0');
  cmt::Reader reader =
      open_log(cmt::fixture::file_of("1: malloc 0x10 8\n" + nuls + "\n1: malloc 0x20 8\n"), "log", {}, {});
  std::size_t events = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) events += batch.size();
  CHECK(events == 2);
  CHECK(reader.repairs().by_kind[static_cast<std::size_t>(cmt::Repair::not_understood)] == 1);
  CHECK(!reader.truncated());
}

TEST_CASE("formats: --help names each format and each form of output") {
  const std::string_view help = help_text;
  for (const std::string_view name : logs::format_names()) CHECK_MESSAGE(help.find(name) != help.npos, name);
  for (const OutputForm& form : output_forms()) CHECK_MESSAGE(help.find(form.name) != help.npos, form.name);
}

}  // namespace cmt::trace2cmt
