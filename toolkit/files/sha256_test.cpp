// Checks digests against the examples of FIPS 180-4, whole and in pieces.

#include "toolkit/files/sha256.h"

#include <doctest/doctest.h>

TEST_CASE("SHA-256 has the sums of the standard") {
  CHECK(cmt::files::sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(cmt::files::sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(cmt::files::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("SHA-256 of pieces is that of the whole") {
  const std::string text(1'000'000, 'a');
  cmt::files::Sha256 sum;
  for (std::size_t i = 0; i < text.size(); i += 997) sum.add(std::string_view(text).substr(i, 997));
  CHECK(sum.hex_digest() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
