// page_of_report: reads a report as JSON from standard input, and writes its page.
#include <iostream>
#include <iterator>

#include "cmtreport/page/report_page.h"

int main() {
  const std::string json{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << cmt::report::to_page("made-up.cmt", json);
}
