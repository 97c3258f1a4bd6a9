#pragma once

#include <cstdint>

#include "cmtwatch/recording/database.h"

namespace cmt::watch {

/// Takes away what a recording holds of before `tick`, but for what still holds then, and gives the space back. Throws
/// DatabaseError; then nothing is taken away.
void forget_before(Database& database, std::int64_t tick);

}  // namespace cmt::watch
