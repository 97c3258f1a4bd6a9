// Draws explanations: the parts of the resident memory as one bar, or over time.
#include <algorithm>
#include <map>
#include <utility>

#include "cmtwatch/explain/explain_report.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch::explain {
namespace {

constexpr std::size_t bands_max = 8;

/// The bytes of parts by their name. A part that is negative is left out.
std::map<std::string, double> bytes_by_name(const Explanation& explanation) {
  std::map<std::string, double> bytes;
  for (const Part& part : explanation.parts) {
    if (part.bytes > 0) bytes[part_name(part)] += static_cast<double>(part.bytes);
  }
  return bytes;
}

/// The names of the largest parts over all looks, the largest first; the others are drawn as one.
std::vector<std::string> names_to_draw(const std::vector<Explanation>& looks) {
  std::map<std::string, double> most;
  for (const Explanation& look : looks) {
    for (const auto& [name, bytes] : bytes_by_name(look)) most[name] = std::max(most[name], bytes);
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, bytes] : most) order.emplace_back(bytes, name);
  std::sort(order.rbegin(), order.rend());
  std::vector<std::string> names;
  for (const auto& [bytes, name] : order) names.push_back(name);
  if (names.size() > bands_max) names.resize(bands_max - 1);
  return names;
}

picture::Panel panel_of(const std::vector<Explanation>& looks) {
  const bool is_series = looks.size() > 1;
  picture::Panel panel{.title = "resident memory by parts",
                       .x = {.title = is_series ? "time" : "", .unit = picture::Unit::ns},
                       .y = {.title = "", .unit = picture::Unit::bytes}};
  if (!is_series) panel.x.ticks = {{0, " "}};
  const std::vector<std::string> names = names_to_draw(looks);
  for (const std::string& name : names) panel.series.push_back({name, {}, {}, picture::Series::Form::step_band});
  panel.series.push_back({"others", {}, {}, picture::Series::Form::step_band});
  const auto add = [&](std::int64_t at, const Explanation& look) {
    auto bytes = bytes_by_name(look);
    for (std::size_t i = 0; i < names.size(); ++i) panel.series[i].add(at, std::exchange(bytes[names[i]], 0.0));
    double others = 0;
    for (const auto& [name, left] : bytes) others += left;
    panel.series.back().add(at, others);
  };
  for (const Explanation& look : looks) add(look.wall_ns - looks[0].wall_ns, look);
  if (!is_series) add(1, looks[0]);
  const auto is_zero = [](const picture::Series& each) {
    return std::all_of(each.y.begin(), each.y.end(), [](double height) { return height == 0; });
  };
  if (is_zero(panel.series.back())) panel.series.pop_back();
  return panel;
}

picture::NumberTable table_of(const Explanation& explanation) {
  picture::NumberTable table{{"memory", "resident", "share"}, {}};
  for (const Part& part : explanation.parts_by_size()) {
    const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, part.bytes));
    table.rows.push_back(
        {part_name(part), output::bytes_text(bytes), output::percent_text(bytes, explanation.resident_bytes)});
  }
  return table;
}

picture::NumberTable files_of(const Explanation& explanation) {
  picture::NumberTable table{{"mapped files", "resident", "copied", "shared with others"}, {}};
  for (const FileMemory& file : explanation.large_files()) {
    const auto shared = file.shared_bytes();
    table.rows.push_back({text::to_line(file.name), output::bytes_text(file.resident_bytes),
                          output::bytes_text(file.copied_bytes), shared ? output::bytes_text(*shared) : "-"});
  }
  return table;
}

}  // namespace

picture::Picture explain_picture(const std::vector<Explanation>& looks) {
  picture::Picture picture;
  if (looks.empty()) return picture;
  const Explanation& last = looks.back();
  picture.title = text::to_line(last.program) + (last.pid != 0 ? " (" + std::to_string(last.pid) + ")" : "");
  picture.subtitle = output::bytes_text(last.resident_bytes) + " resident";
  picture.panels.push_back(panel_of(looks));
  picture.tables.push_back(table_of(last));
  if (auto files = files_of(last); !files.rows.empty()) picture.tables.push_back(std::move(files));
  ExplainForm form;
  form.width = 100;
  picture.table = advice_text(last, form);
  return picture;
}

}  // namespace cmt::watch::explain
