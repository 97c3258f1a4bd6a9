#include "toolkit/command/trace_input.h"

#include "cmt/text.h"
#include "libcmt/text/utf8.h"
#include "toolkit/command/open_trace.h"

namespace cmt::command {

TraceInput::TraceInput(const std::string& path, ReadOptions options, std::function<void(const std::string&)> say)
    : path_(path),
      say_(std::move(say)),
      complaints_(options.strict, say_),
      reader_(open_trace(path_, with_complaints(std::move(options)))) {
  complaints_.set_place([this] { return reader_.place(current_); });
}

ReadOptions TraceInput::with_complaints(ReadOptions options) {
  options.on_defect = [this](const Defect& defect) { complaints_.add(defect.place, defect.what); };
  return options;
}

void TraceInput::require_times(const std::string& needed_by) const {
  if (!header().has_times) throw FormatError(path_, "times were not recorded (needed by " + needed_by + ")");
}

std::string_view TraceInput::line(const Event& event, std::size_t i) {
  const std::string_view line = reader_.line(i);
  if (!line.empty() && text::is_plain(line)) return line;
  own_line_.clear();
  append_line(own_line_, event);
  return own_line_;
}

}  // namespace cmt::command
