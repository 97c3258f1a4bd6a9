/// The report of an explanation: text for people, one line for scripts, JSON.
#pragma once

#include <string>
#include <vector>

#include "cmtwatch/explain/explanation.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch::explain {

/// How an explanation is written.
struct ExplainForm {
  bool bytes = false;      ///< numbers in bytes
  bool verbose = false;    ///< sizes of live blocks, fill of pages
  std::size_t width = 80;  ///< columns that lines are broken at
};

/// One screen for people.
std::string explain_text(const Explanation& explanation, const ExplainForm& form);

/// The advice alone, and the doubts, as lines that begin with "-".
std::string advice_text(const Explanation& explanation, const ExplainForm& form);

/// Looks at one process, by time. One look is drawn as a bar, several over time. For none the picture is empty.
picture::Picture explain_picture(const std::vector<Explanation>& looks);

/// One line for scripts: "pid=4711 resident=156340224 live=30412800 ...", all in bytes.
std::string explain_line(const Explanation& explanation);

/// Schema cmt.explain/1: one object for each process.
std::string explain_json(const std::vector<Explanation>& explanations);

}  // namespace cmt::watch::explain
