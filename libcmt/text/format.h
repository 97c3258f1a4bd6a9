#pragma once

#include <string>
#include <string_view>

#include "cmt/header.h"

namespace cmt::text {

/// Appends `text` quoted, its control characters, quotes and backslashes escaped.
void append_string(std::string& out, std::string_view text);

/// Appends the header's lines; nothing where there is no metadata (the seed's form).
void append_header(std::string& out, const Header& header);

/// Appends the line that ends a text with a header.
void append_end(std::string& out, const Repairs& repairs, bool truncated);

}  // namespace cmt::text
