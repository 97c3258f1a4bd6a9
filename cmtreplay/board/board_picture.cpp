// The board as a picture: time against memory, and the matrix as maps.
#include "cmtreplay/board/board.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {

output::Picture board_picture(const Board& board) {
  output::Picture picture;
  picture.title = "Allocators on " + output::counted(board.traces.size(), "trace");
  picture.table = board_text(board);
  return picture;
}

}  // namespace cmt::replay
