/// Reads a text trace (format-spec/text.md).
#pragma once

#include "libcmt/text/parser.h"
#include "libcmt/text/stack_lines.h"
#include "libcmt/trace/lines/line_source.h"
#include "libcmt/trace/writer/ledger.h"

namespace cmt {

/// A text trace.
class TextSource : public LineSource {
 public:
  TextSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log);

 private:
  void take(std::string_view line) override;
  void take_stack(Event& event) override;
  void take_last(std::string_view line) override;
  void end() override;
  void take_metadata(const text::Line& line);
  void take_repairs(std::string_view key, const std::string& value);

  text::Parser parser_;
  text::StackLineReader stack_lines_{stacks_};
  NewestPoolBlock newest_pool_block_;
  bool wants_stacks_;
  bool ended_ = false;
};

/// Throws FormatError if an input begins as no text does, or if its first 4,096 bytes contain a NUL that is not at the
/// begin of a line.
void require_text(Input& input);

}  // namespace cmt
