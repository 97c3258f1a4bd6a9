// Makes the golden .cmt of format-spec/vectors from their texts:
//
//     make_vectors FOLDER
//
// Every FOLDER/NAME.text becomes FOLDER/NAME.cmt. The files in the table below have small blocks of the stream, so that
// a file of a few hundred bytes has several blocks, and keyframes.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "cmt/writer.h"
#include "libcmt/text/parser.h"

namespace {

struct BlockSize {
  std::string_view name;
  std::uint32_t events;
};

constexpr BlockSize block_sizes[] = {
    {"blocks", 3},  {"touches_in_blocks", 3}, {"keyframe", 32}, {"stacks_in_blocks", 3}, {"streams_come_and_go", 4},
    {"threads", 5}, {"origins", 8},           {"pools", 8},     {"interpreter", 3},      {"sampled", 4}};

std::uint32_t block_events(std::string_view name) {
  for (const BlockSize& size : block_sizes) {
    if (size.name == name) return size.events;
  }
  return cmt::WriteOptions{}.block_events;
}

/// Vectors that .cmt can express and a reader of text mends: overlapping blocks, and times that go back.
constexpr std::string_view contradictory[] = {"large", "times"};

/// Vectors of sampled traces. A reader of text refuses them.
constexpr std::string_view sampled[] = {"sampled"};
/// The line for Totals::samples_lost of such a text.
constexpr std::string_view samples_lost_key = "samples_lost";

bool is_in(const auto& names, const std::filesystem::path& text) {
  return std::ranges::find(names, text.stem().string()) != std::end(names);
}

/// Calls `take` with each parsed line.
void parse_lines(const std::filesystem::path& text, const auto& take) {
  std::ifstream lines(text);
  cmt::text::Parser parser;
  for (std::string line; std::getline(lines, line);) take(parser.parse(line));
}

/// Writes the events of such a text as they are, without repairs.
void encode_lines(const std::filesystem::path& text, cmt::Writer& writer) {
  std::uint64_t samples_lost = 0;
  parse_lines(text, [&](const cmt::text::Line& line) {
    if (line.sort == cmt::text::Line::Sort::event && !writer.add(line.event) && is_in(sampled, text))
      throw cmt::FormatError(text.string(), "an event contradicts those before");
    if (line.sort == cmt::text::Line::Sort::metadata && line.key == samples_lost_key)
      samples_lost = std::stoull(std::string(line.value));
  });
  writer.finish({}, false, {}, samples_lost);
}

void encode_sampled(const std::filesystem::path& text, int fd) {
  cmt::Header header{.has_header = true, .metadata = {}};
  parse_lines(text, [&](const cmt::text::Line& line) {
    if (line.sort == cmt::text::Line::Sort::metadata && line.key != "text" && line.key != "end" &&
        line.key != samples_lost_key)
      header.metadata.emplace_back(line.key, line.value);
  });
  cmt::Writer writer(fd, header, {.block_events = block_events(text.stem().string())});
  encode_lines(text, writer);
}

void encode(const std::filesystem::path& text) {
  std::filesystem::path output = text;
  output.replace_extension(".cmt");
  const int fd = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (is_in(sampled, text)) {
    encode_sampled(text, fd);
    close(fd);
    return;
  }
  cmt::ReadOptions options;
  const bool is_contradictory = is_in(contradictory, text);
  options.strict = !is_contradictory;
  options.stacks = true;
  cmt::Reader reader(text.string(), options);
  cmt::Writer writer(fd, reader.header(), {.block_events = block_events(text.stem().string())});
  if (is_contradictory) {
    encode_lines(text, writer);
    close(fd);
    return;
  }
  writer.use_stacks(reader.stacks());
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) {
      if (!writer.add(event)) throw cmt::FormatError(text.string(), "an event contradicts those before");
    }
  }
  writer.finish(reader.repairs(), reader.truncated(), reader.stretches());
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("Usage: make_vectors FOLDER\n", stderr);
    return 2;
  }
  try {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
      if (entry.path().extension() == ".text") encode(entry.path());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_vectors: %s\n", error.what());
    return 1;
  }
}
