#include "cmt/repairs.h"

namespace cmt {

std::string_view name(Repair repair) {
  static constexpr std::array<std::string_view, repair_count> names{
      "not_understood",    "unmatched_free", "unmatched_realloc", "order_race",
      "double_allocation", "misfree",        "contradiction",     "unknown_kind",
  };
  return names[static_cast<std::size_t>(repair)];
}

}  // namespace cmt
