#include "cmtreport/page/report_page.h"

#include <doctest/doctest.h>

using cmt::report::to_page;

TEST_CASE("report page: a hostile title and report end no element") {
  const std::string page = to_page("</title><script>alert(1)</script>", "{\"name\": \"</script><img onerror=x>\"}");
  CHECK(page.find("<title>&lt;/title&gt;") != page.npos);
  CHECK(page.find("alert(1)</script>") == page.npos);
  CHECK(page.find("onerror") == page.npos);
  CHECK(page.find("<script type=\"application/gzip\" id=\"report\">H4sI") != page.npos);
}

TEST_CASE("report page: its policy lets nothing else run or load") {
  const std::string page = to_page("a", "{}");
  CHECK(page.find("default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-") != page.npos);
  CHECK(page.find("unsafe") == page.npos);
  CHECK((page.find("interactive parts are missing") != page.npos) != cmt::report::page_is_interactive());
}
