// trace2cmt: any trace in, .cmt or text out.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cmt/reader.h"
#include "cmt/writer.h"
#include "command/complaints.h"
#include "options.h"

namespace {

/// The output, which gets its name only when it is whole: a regular file is written beside it first.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path) {
    if (path_ == "-") return;
    struct stat status;
    const bool is_special = stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
    if (!is_special) part_ = path_ + ".part";
    const std::string& opened = is_special ? path_ : part_;
    fd_ = open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), opened);
  }

  ~OutputFile() {
    if (!part_.empty()) unlink(part_.c_str());
  }

  int fd() const { return fd_; }

  void commit() {
    if (path_ != "-" && close(fd_) != 0) throw std::system_error(errno, std::generic_category(), path_);
    if (part_.empty()) return;
    if (rename(part_.c_str(), path_.c_str()) != 0) throw std::system_error(errno, std::generic_category(), path_);
    part_.clear();
  }

 private:
  std::string path_;
  std::string part_;
  int fd_ = STDOUT_FILENO;
};

void say_what_was_done(const trace2cmt::Options& options, const cmt::Reader& reader, const cmt::Writer& writer,
                       std::uint64_t repairs) {
  const cmt::Totals& totals = writer.totals();
  if (reader.truncated()) {
    std::fprintf(stderr, "trace2cmt: warning: %s: the trace breaks off; all that is whole was read\n",
                 options.input.c_str());
  }
  if (repairs != 0) {
    std::fprintf(stderr, "trace2cmt: %llu events, %llu repairs\n", static_cast<unsigned long long>(totals.events),
                 static_cast<unsigned long long>(repairs));
  }
}

void convert(const trace2cmt::Options& options) {
  if (options.output == "-" && options.to == cmt::Format::cmt && isatty(STDOUT_FILENO)) {
    throw std::runtime_error("will not write a .cmt to a terminal; redirect it, or use -o or -s");
  }
  cmt::command::Complaints complaints(
      options.strict, [](const std::string& line) { std::fprintf(stderr, "trace2cmt: %s\n", line.c_str()); });
  cmt::ReadOptions read_options;
  read_options.strict = options.strict;
  read_options.on_defect = [&](const cmt::Defect& defect) { complaints.add(defect.place, defect.what); };
  cmt::Reader reader(options.input, read_options);
  OutputFile output(options.output);
  cmt::Writer writer(output.fd(), reader.header(), {.format = options.to, .level = options.level});

  std::uint64_t refused = 0;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) {
      if (writer.add(event)) continue;
      ++refused;
      complaints.add(options.input + ": event " + std::to_string(writer.totals().events + refused),
                     "its tag contradicts the events before: dropped");
    }
  }
  const std::uint64_t repairs = reader.repairs() + refused;
  writer.finish(repairs, reader.truncated());
  output.commit();
  say_what_was_done(options, reader, writer, repairs);
}

}  // namespace

int main(int argc, char** argv) {
  return cmt::command::run(
      argc, argv,
      {"trace2cmt", CMT_VERSION, trace2cmt::help_text, trace2cmt::known_options,
       [](const cmt::command::CommandLine& line) { return convert(trace2cmt::options_of(line)), 0; }});
}
