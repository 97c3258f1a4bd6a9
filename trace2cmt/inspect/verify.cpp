#include "verify.h"

#include "event_checks.h"
#include "toolkit/output/numbers.h"

namespace trace2cmt {
namespace {

/// A text whose recording broke off says so; one that was cut off cannot.
bool says_its_end(const TraceFile& file) {
  constexpr std::uint64_t end_size = 64;
  const std::string end = file.at(file.size() < end_size ? 0 : file.size() - end_size, end_size);
  return end.find("\n#cmt end=truncated") != std::string::npos;
}

}  // namespace

Verdict verify(const TraceFile& file, const std::function<void(const std::string&)>& tell) {
  if (file.is_cmt()) return verify_cmt(file, tell);
  Verdict verdict;
  const auto fault = [&](const std::string& place, const std::string& what) {
    ++verdict.faults;
    tell(place + ": " + what);
  };
  cmt::ReadOptions options;
  options.on_defect = [&](const cmt::Defect& defect) { fault(defect.place, defect.what); };
  cmt::Reader reader = file.reader(options);
  std::size_t at = 0;  // in the batch
  EventChecks checks([&](const std::string& what) { fault(reader.place(at), what); });
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    for (at = 0; at < batch.size(); ++at) checks.take(batch[at]);
  }
  if (reader.truncated() && !says_its_end(file) && verdict.faults == 0)
    fault(file.name(), "the end of the trace is missing");
  verdict.checked =
      cmt::output::with_commas(checks.totals().events) + " events: all that reading checks, tags, addresses, times";
  return verdict;
}

}  // namespace trace2cmt
