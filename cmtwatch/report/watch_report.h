#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmtwatch/report/report.h"
#include "toolkit/terminal/terminal_view.h"

namespace cmt::watch {

/// "1 process could not be read", "2 processes…".
std::string refusals(unsigned count);

/// Lines for people; on a terminal a view that is drawn over: the last samples as columns, and where wanted the
/// processes. Where a command writes to the same terminal it is one line.
class TextReport : public Report {
 public:
  TextReport(const Options& options, Destination& destination);
  void sample(const Sample& sample) override;
  void resized() override;
  void clear() override { live_->clear(); }
  void end(const Outcome& outcome, const std::optional<command::Ended>& ended) override;

 private:
  std::string amount(std::uint64_t bytes) const;
  std::string tree(const Sample& sample) const;
  std::string line(const Sample& sample) const;
  void show_live();
  std::string traced_line(const Outcome& outcome) const;
  std::string peak_line(const Outcome& outcome, const std::optional<command::Ended>& ended) const;

  const Options& options_;
  Destination& destination_;
  std::unique_ptr<output::TerminalView> live_;
  std::vector<std::uint64_t> recent_;
  Sample last_;
  Sample peak_;
};

/// A row a sample, or with names a row a process.
class CsvReport : public Report {
 public:
  CsvReport(const Options& options, Destination& destination);
  void sample(const Sample& sample) override;
  void end(const Outcome&, const std::optional<command::Ended>&) override {}

 private:
  std::string live(const std::optional<Live>& live) const;

  const Options& options_;
  Destination& destination_;
};

/// Schema cmt.watch/1.
std::string to_json(const Options& options, const std::vector<Sample>& samples, const Outcome& outcome,
                    const std::optional<command::Ended>& ended);

/// The same, written at the end: samples are kept until then.
class JsonReport : public Report {
 public:
  JsonReport(const Options& options, Destination& destination) : options_(options), destination_(destination) {}
  void sample(const Sample& sample) override { samples_.push_back(sample); }
  void end(const Outcome& outcome, const std::optional<command::Ended>& ended) override;

 private:
  const Options& options_;
  Destination& destination_;
  std::vector<Sample> samples_;
};

}  // namespace cmt::watch
