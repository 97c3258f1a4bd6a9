#pragma once

#include <string>

#include "cmt/header.h"

namespace trace2cmt {

/// ": 2 frees of no block dropped, 1 order race swapped", for the end of a sentence that gives their number; empty
/// where the kinds are not known.
std::string repairs_by_kind(const cmt::Repairs& repairs);

}  // namespace trace2cmt
