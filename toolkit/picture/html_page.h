/// Parts of an HTML page, for pictures and for the report of cmtreport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "toolkit/picture/packed_data.h"

/// The elements of an HTML page that opens without a network. By its content policy the browser runs and styles only
/// the parts that the page was made of. So no name from a trace can become a script.
namespace cmt::picture {

/// The text of one element, and its SHA-256 in hexadecimal digits.
struct PagePart {
  std::string_view text;
  std::string_view digest;
};

/// The beginning of a page, from the document type to the title. The content policy has the digests of these styles and
/// scripts. The caller goes on with the styles, ends the head and writes the body.
std::string page_head(std::string_view title, const std::vector<PagePart>& styles,
                      const std::vector<PagePart>& scripts);

/// `<name>text</name>`. The text is taken as it is.
std::string element(std::string_view name, std::string_view text);

/// JSON for a page's scripts.
std::string data_element(std::string_view id, std::string_view json);

/// The same, of the type application/gzip: compressed and in base64, which takes a fifth of the room. On at most `jobs`
/// threads.
std::string packed_data_element(std::string_view id, std::string_view json, unsigned jobs = 1);

/// The same of data that came piece by piece.
std::string packed_data_element(std::string_view id, PackedData data);

/// A library's name and licence, as a comment.
std::string licence_comment(std::string_view library, std::string_view licence);

/// In base64 (RFC 4648).
std::string base64(std::string_view bytes);

}  // namespace cmt::picture
