#include "toolkit/picture/html_page.h"

#include <doctest/doctest.h>

using namespace cmt::output;

TEST_CASE("html: base64 is that of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("html: a page's head allows the digests of its parts") {
  // The SHA-256 of nothing.
  const PagePart empty{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
  const std::string head = page_head("a & b", {empty}, {});
  CHECK(head.find("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; script-src 'none'\"") != head.npos);
  CHECK(head.find("<title>a &amp; b</title>") != head.npos);
}

TEST_CASE("html: data ends no element") {
  CHECK(data_element("x", "\"</script>\"") ==
        "<script type=\"application/json\" id=\"x\">\"\\u003c/script>\"</script>\n");
  CHECK(packed_data_element("x", "</script>").find("</script>\n") == packed_data_element("x", "</script>").size() - 10);
}
