// page_of_report: the page of a report that standard input has as JSON.
#include <iostream>
#include <iterator>

#include "cmtreport/page/report_page.h"

int main() {
  const std::string json{std::istreambuf_iterator<char>(std::cin), {}};
  std::cout << cmt::report::to_page("made-up.cmt", json);
}
