#include "cmt/event.h"

namespace cmt {

std::string_view name(Kind kind) {
  static constexpr std::array<std::string_view, kind_count> names{
      "malloc",
      "free",
      "calloc",
      "realloc",
      "reallocarray",
      "aligned_alloc",
      "posix_memalign",
      "memalign",
      "valloc",
      "pvalloc",
      "free_sized",
      "free_aligned_sized",
      "operator_new",
      "operator_new_nothrow",
      "operator_new_array",
      "operator_new_array_nothrow",
      "operator_delete",
      "operator_delete_sized",
      "operator_delete_array",
      "operator_delete_array_sized",
      "thread_start",
      "thread_exit",
      "thread_name",
      "mark",
      "sample",
  };
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace cmt
