/// The report of an explanation: text for people, one line for scripts, JSON.
#pragma once

#include <string>
#include <vector>

#include "cmtwatch/explain/explanation.h"

namespace cmt::watch::explain {

/// How an explanation is written.
struct ExplainForm {
  bool bytes = false;      ///< numbers in bytes
  bool verbose = false;    ///< sizes of live blocks, fill of pages
  std::size_t width = 80;  ///< columns that lines are broken at
};

/// One screen for people.
std::string explain_text(const Explanation& explanation, const ExplainForm& form);

/// One line for scripts: "pid=4711 resident=156340224 live=30412800 ...", all in bytes.
std::string explain_line(const Explanation& explanation);

/// Schema cmt.explain/1: one object for each process.
std::string explain_json(const std::vector<Explanation>& explanations);

}  // namespace cmt::watch::explain
