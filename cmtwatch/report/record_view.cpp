#include "cmtwatch/report/record_view.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "toolkit/command/command_line.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/sparkline.h"

namespace cmt::watch {
namespace {

using output::Beside;

/// More columns than terminals have.
constexpr std::size_t moments_kept = 1024;

std::string amount(const Summed& memory) {
  return output::bytes_text(memory.bytes()) + " " + std::string(memory.metric());
}

std::string counted(std::uint64_t number, const char* one, const char* more) {
  return output::with_commas(number) + " " + (number == 1 ? one : more);
}

}  // namespace

RecordView::RecordView(Beside beside)
    : beside_(beside),
      live_(output::make_terminal_view(beside == Beside::nobody ? STDOUT_FILENO : STDERR_FILENO, beside)),
      prints_(beside == Beside::nobody && !live_->active()) {}

void RecordView::show(std::int64_t tick, std::int64_t time_ns, std::size_t processes, Summed memory) {
  ++moments_;
  last_ = {tick, time_ns, processes, memory};
  if (memory.bytes() >= peak_.memory.bytes()) peak_ = last_;
  if (prints_) {
    return print(output::seconds_text(time_ns) + "  " + amount(memory) + ", " +
                 counted(processes, "process", "processes") + "\n");
  }
  if (!live_->active()) return;
  if (recent_.size() == moments_kept) recent_.erase(recent_.begin());
  recent_.push_back(memory.bytes());
  draw();
}

void RecordView::resized() {
  if (moments_ == 0) return;
  live_->resized();
  draw();
}

void RecordView::draw() {
  if (!live_->due()) return;
  const std::string head = output::seconds_text(last_.time_ns) + "  " + amount(last_.memory) + ", " +
                           counted(last_.processes, "process", "processes") + ", " +
                           counted(static_cast<std::uint64_t>(last_.tick), "moment", "moments") + ", peak " +
                           amount(peak_.memory) + " at " + output::seconds_text(peak_.time_ns);
  const std::size_t width = live_->size().columns - 1;
  if (beside_ == Beside::nobody) return live_->show({head, output::sparkline(recent_, width)});
  const std::size_t left = width > head.size() + 2 ? width - head.size() - 2 : 0;
  live_->show({head + "  " + output::sparkline(recent_, left)});
}

void RecordView::end(double cost_share) {
  live_->clear();
  if (moments_ == 0 || (beside_ == Beside::command && !live_->active())) return;
  const std::string line = "peak " + amount(peak_.memory) + " at " + output::seconds_text(peak_.time_ns) + "; " +
                           counted(moments_, "moment", "moments") + "; recording took " +
                           output::fixed(cost_share * 100, 1) + " % of a processor\n";
  if (beside_ == Beside::nobody) return print(line);
  std::fputs(("cmtwatch record: " + line).c_str(), stderr);
}

/// A reader that has gone does not end the recording.
void RecordView::print(const std::string& line) {
  if (!prints_ && !live_->active()) return;
  try {
    command::print(line);
  } catch (const std::system_error& error) {
    prints_ = false;
    std::fprintf(stderr, "cmtwatch record: %s; the recording goes on\n", error.what());
  }
}

}  // namespace cmt::watch
