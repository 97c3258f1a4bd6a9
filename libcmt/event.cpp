#include "cmt/event.h"

#include <array>

namespace cmt {
namespace {

struct KindRow {
  std::string_view name;
  KindTraits traits;
};

// name, {allocates, releases, counts, sizes, aligns, may_align, labels}
constexpr std::array<KindRow, kind_count> rows{{
    {"malloc", {true, false, false, true, false, false, false}},
    {"free", {false, true, false, false, false, false, false}},
    {"calloc", {true, false, true, true, false, false, false}},
    {"realloc", {true, true, false, true, false, false, false}},
    {"reallocarray", {true, true, true, true, false, false, false}},
    {"aligned_alloc", {true, false, false, true, true, false, false}},
    {"posix_memalign", {true, false, false, true, true, false, false}},
    {"memalign", {true, false, false, true, true, false, false}},
    {"valloc", {true, false, false, true, false, false, false}},
    {"pvalloc", {true, false, false, true, false, false, false}},
    {"free_sized", {false, true, false, true, false, false, false}},
    {"free_aligned_sized", {false, true, false, true, true, false, false}},
    {"operator_new", {true, false, false, true, false, true, false}},
    {"operator_new_nothrow", {true, false, false, true, false, true, false}},
    {"operator_new_array", {true, false, false, true, false, true, false}},
    {"operator_new_array_nothrow", {true, false, false, true, false, true, false}},
    {"operator_delete", {false, true, false, false, false, true, false}},
    {"operator_delete_sized", {false, true, false, true, false, true, false}},
    {"operator_delete_array", {false, true, false, false, false, true, false}},
    {"operator_delete_array_sized", {false, true, false, true, false, true, false}},
    {"thread_start", {false, false, false, false, false, false, false}},
    {"thread_exit", {false, false, false, false, false, false, false}},
    {"thread_name", {false, false, false, false, false, false, true}},
    {"mark", {false, false, false, false, false, false, true}},
    {"sample", {false, false, false, true, false, false, false}},
}};

}  // namespace

std::string_view name(Kind kind) { return rows[static_cast<std::size_t>(kind)].name; }

const KindTraits& traits(Kind kind) { return rows[static_cast<std::size_t>(kind)].traits; }

}  // namespace cmt
