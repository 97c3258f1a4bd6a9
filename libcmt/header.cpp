#include "cmt/header.h"

namespace cmt {

std::string_view name(Format format) {
  switch (format) {
    case Format::text:
      return "text";
    case Format::cmt:
      return "cmt";
    case Format::legacy_cmt:
      return "legacy_cmt";
  }
  return "";
}

}  // namespace cmt
