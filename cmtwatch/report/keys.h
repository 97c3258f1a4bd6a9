#pragma once

#include <string>

namespace cmt::watch {

/// What the keys of `play` stand for.
enum class Key { none, quit, pause, next, back, first, last };

/// Takes the first key off what a terminal in raw mode has sent: q and Ctrl-C quit, the space bar pauses, Enter, the
/// right and the lower arrow go on, the left and the upper one back, Home and End to either end. `none`: a key that
/// stands for nothing, or there is none.
Key take_key(std::string& bytes);

}  // namespace cmt::watch
