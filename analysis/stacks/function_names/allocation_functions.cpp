// The list of functions that only hand memory on, and the search in it.
//
// To add a function, add a line to its group. A line is a pattern for the short name of a function
// (analysis/stacks/function_names/short_name.h), and "*" is any text:
//
//     std::*::_M_*        int* std::vector<int, std::allocator<int> >::_M_allocate(unsigned long)
//
// The short name has no arguments, and "<>" instead of template arguments. A "<>" at its end is not compared. Add names
// that mean the same in every program. Users name the others with --skip.
//
// glibc calls its own functions by aliases: "__GI___strdup" is __strdup. These need no line.
#include "analysis/stacks/function_names/allocation_functions.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <unordered_set>
#include <vector>

#include "analysis/stacks/function_names/short_name.h"

namespace cmt::analysis {
namespace {

constexpr std::array patterns = std::to_array<std::string_view>({
    // C.
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "__malloc",
    "__calloc",
    "__realloc",
    "__memalign",
    "__posix_memalign",
    "__valloc",
    "__pvalloc",
    "__libc_*alloc",
    "__libc_memalign",
    "__libc_reallocarray",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "wcsdup",
    "__wcsdup",
    "asprintf",
    "vasprintf",
    "__asprintf",
    "__vasprintf",
    "__vasprintf_internal",
    "___asprintf",
    "__asprintf_chk",
    "__vasprintf_chk",
    "___asprintf_chk",
    "___vasprintf_chk",

    // Inlined from cmttrace.h.
    "cmt_pool_alloc",
    "cmt_pool_realloc",

    // C programs that end when no memory is left: GNU, git, OpenSSH, bash, gcc and others.
    "xmalloc",
    "xmallocz",
    "xmallocarray",
    "xcalloc",
    "xrealloc",
    "xreallocarray",
    "xzalloc",
    "xalloc",
    "xnmalloc",
    "xnrealloc",
    "x2realloc",
    "x2nrealloc",
    "xpalloc",
    "xcharalloc",
    "xmemdup",
    "xmemdup0",
    "xmemdupz",
    "xstrdup",
    "xstrdup_or_null",
    "xstrndup",
    "xasprintf",
    "xvasprintf",
    "ximalloc",
    "xizalloc",
    "xicalloc",
    "xirealloc",
    "xireallocarray",
    "ximemdup*",
    "imalloc",
    "icalloc",
    "irealloc",
    "ireallocarray",
    "do_xmalloc*",
    "sh_xmalloc",
    "sh_xrealloc",
    "safe_malloc",
    "safe_calloc",
    "safe_realloc",
    "safe_strdup",
    "safemalloc",
    "saferealloc",
    "emalloc",
    "ecalloc",
    "erealloc",
    "estrdup",
    "smalloc",
    "ggc_internal_alloc*",
    "ggc_internal_cleared_alloc*",
    "ggc_realloc",
    "_obstack_newchunk",
    "_obstack_begin*",
    "call_chunkfun",

    // Python.
    "PyMem_*alloc",
    "_PyMem_*alloc",
    "_PyMem_*Alloc",
    "_PyMem_*Strdup",
    "_PyMem_*Wcsdup",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_*alloc",
    "_PyObject_GC_Alloc",
    "_PyObject_GC_New",
    "_PyObject_GC_NewVar",
    "_PyObject_GC_Resize",
    "_PyObject_New",
    "_PyObject_NewVar",
    "PyType_GenericAlloc",
    "_PyType_AllocNoTrack",
    "pymalloc_alloc",
    "pymalloc_realloc",
    "allocate_from_new_pool",
    "new_arena",
    "arena_map_*",
    "gc_alloc",

    // Perl, Ruby, PHP and Lua.
    "Perl_safesys*alloc",
    "Perl_savepv*",
    "ruby_x*alloc*",
    "ruby_strdup",
    "rb_x*alloc*",
    "rb_gc_impl_*alloc",
    "objspace_x*alloc*",
    "_emalloc*",
    "_ecalloc",
    "_erealloc*",
    "_estrdup",
    "_estrndup",
    "_safe_*alloc",
    "__zend_*alloc",
    "zend_mm_*",
    "l_alloc",
    "luaM_*alloc*",
    "luaM_growaux_",

    // Libraries and servers: glib, OpenSSL, SQLite, Redis, PostgreSQL, libxml2 and zlib.
    "g_malloc*",
    "g_realloc*",
    "g_try_malloc*",
    "g_try_realloc*",
    "g_aligned_alloc*",
    "g_slice_alloc*",
    "g_slice_copy",
    "g_strdup",
    "g_strdup_*printf",
    "g_strndup",
    "g_memdup*",
    "CRYPTO_*alloc",
    "CRYPTO_*dup",
    "sqlite3_malloc*",
    "sqlite3_realloc*",
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3Malloc*",
    "sqlite3Realloc",
    "sqlite3Db*alloc*",
    "sqlite3DbStr*Dup",
    "dbMallocRawFinish",
    "dbReallocFinish",
    "mallocWithAlarm",
    "zmalloc*",
    "zcalloc*",
    "zrealloc*",
    "ztry*alloc*",
    "zstrdup",
    "palloc",
    "palloc0",
    "palloc_extended",
    "repalloc*",
    "pstrdup",
    "pnstrdup",
    "pg_malloc*",
    "pg_realloc*",
    "pg_strdup",
    "MemoryContextAlloc*",
    "AllocSetAlloc*",
    "AllocSetRealloc",
    "xmlStrdup",
    "xmlStrndup",

    // C++: operators, also those of a class, and functions that only libraries call.
    "operator new",
    "operator new[]",
    "*::operator new",
    "*::operator new[]",
    "_Znwm*",
    "_Znam*",
    "std::*::allocate",
    "std::*::allocate_at_least",
    "std::__*allocate*",
    "std::*::__*allocate*",
    "std::*::__libcpp_*",
    "std::*::_M_*",
    "std::*::_S_*",
    "std::_Deque_base<>::*",
    "std::_Hashtable<>::*",
    "std::_Head_base<>::*",
    "std::_Optional_*",
    "std::_Rb_tree<>::*",
    "std::_Sp_*",
    "std::_Tuple_impl<>::*",
    "std::_Vector_base<>::*",
    "std::__cxx11::_List_base<>::*",
    "std::__detail::_*",
    "std::__shared_*",
    "std::__uninitialized_*",
    "std::pair<>::pair",
    "std::tuple<>::tuple",
    "__gnu_cxx::*::allocate",
    "__gnu_cxx::*::_M_*",
    "llvm::allocate_buffer",
    "llvm::safe_*alloc",
    "llvm::MallocAllocator::Allocate",
    "llvm::BumpPtrAllocatorImpl<>::*",
    "llvm::SmallVectorBase<>::*",
    "QArrayData::*allocate*",
    "QTypedArrayData<>::allocate*",

    // Rust: the allocator, and the code of containers, iterators and texts.
    "__rust_*alloc*",
    "__rdl_*alloc*",
    "__rg_*alloc*",
    "__rustc::__r*",
    "alloc::alloc::*",
    "alloc::borrow::*",
    "alloc::boxed::*",
    "alloc::collections::*",
    "alloc::ffi::*",
    "alloc::fmt::*",
    "alloc::raw_vec::*",
    "alloc::rc::*",
    "alloc::slice::*",
    "alloc::str::*",
    "alloc::string::*",
    "alloc::sync::*",
    "alloc::vec::*",
    "<alloc::*",
    "<<alloc::*",
    "<* as alloc::*",
    "<* as <[_]>::*",
    "<[*]>::*",
    "<str>::*",
    "hashbrown::*",
    "<hashbrown::*",
    "std::io::buffered::*",
    "<std::io::buffered::*",
    "std::collections::hash::*",
    "<std::collections::hash::*",
    "core::clone::*",
    "core::convert::*",
    "core::fmt::*",
    "core::iter::*",
    "<* as core::iter::*",
    "core::ops::function::*",
    "core::option::Option<>::*",
    "core::result::Result<>::*",
    "<core::*",
    "<&* as core::*",
    "<u8 as core::*",
    "<u16 as core::*",
    "<u32 as core::*",
    "<u64 as core::*",
    "<u128 as core::*",
    "<usize as core::*",
    "<i8 as core::*",
    "<i16 as core::*",
    "<i32 as core::*",
    "<i64 as core::*",
    "<i128 as core::*",
    "<isize as core::*",
    "<f32 as core::*",
    "<f64 as core::*",
    "<bool as core::*",
    "<char as core::*",
    "<str as core::*",

    // The same of C++ and Rust by their files, for debug information without classes and namespaces.
    "/include/c++/*:_M_*",
    "/include/c++/*:_S_*",
    "/include/c++/*:_Deque_base",
    "/include/c++/*:_Head_base",
    "/include/c++/*:_List_base",
    "/include/c++/*:_Optional_*",
    "/include/c++/*:_Sp_*",
    "/include/c++/*:_Tuple_impl",
    "/include/c++/*:_Vector_base",
    "/include/c++/*:__*allocate*",
    "/include/c++/*:__libcpp_*",
    "/include/c++/*:__shared_*",
    "/include/c++/*:__uninitialized_*",
    "/include/c++/*:allocate",
    "/include/c++/*:allocate_at_least",
    "/include/c++/*:pair",
    "/include/c++/*:tuple",
    "/include/c++/*/hashtable*.h:*",
    "/include/c++/*/stl_tree.h:*",
    "/rustc*/library/alloc/src/*",
    "/rustc*/library/core/src/*",
    "/rustc*/library/std/src/collections/hash/*",
    "/rustc*/library/std/src/io/buffered/*",
    "/hashbrown-*",

    // V8 and Node, and its functions of JavaScript that make buffers.
    "* (node:buffer:*",
    "FastBuffer (buffer:*",
    "createUnsafe*Buffer (buffer:*",
    "node::UncheckedMalloc",
    "node::UncheckedCalloc",
    "node::UncheckedRealloc",
    "node::Malloc",
    "node::Calloc",
    "node::Realloc",
    "node::NodeArrayBufferAllocator::*",
    "v8::ArrayBuffer::NewBackingStore*",
    "v8::base::*Alloc*",
    "v8::base::Malloc",
    "v8::base::Calloc",
    "v8::base::Realloc",
    "v8::internal::*AllocWithRetry*",
    "v8::internal::AllocAtLeastWithRetry",
    "v8::internal::AlignedAlloc*",
    "v8::internal::AllocatePages",
    "v8::internal::NewArray",
    "v8::internal::StrDup",
    "v8::internal::StrNDup",
    "v8::internal::AccountingAllocator::*",
    "v8::internal::BackingStore::Allocate*",
    "v8::internal::BasicMemoryChunk::Allocate*",
    "v8::internal::*Factory*::Allocate*",
    "v8::internal::*Heap::Allocate*",
    "v8::internal::HeapAllocator::*",
    "v8::internal::MemoryAllocator::*",
    "v8::internal::MemoryChunk::Allocate*",
    "v8::internal::*Space::Allocate*",
    "v8::internal::*Space::*RefillLab*",
    "v8::internal::Zone::*",

    // Java's virtual machine.
    "os::malloc",
    "os::realloc",
    "os::strdup*",
    "AllocateHeap",
    "ReallocateHeap",
    "Arena::grow",
    "Arena::A*alloc*",
});

/// Whether a text matches a pattern from `at` on. Each "*" takes as little as it can; the next part is then searched.
constexpr bool matches(std::string_view pattern, std::string_view text) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  for (pattern.remove_prefix(star + 1);; pattern.remove_prefix(star + 1)) {
    star = pattern.find('*');
    if (star == std::string_view::npos) return text.ends_with(pattern);
    const std::size_t found = text.find(pattern.substr(0, star));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + star);
  }
}

static_assert(matches("std::*::_M_*", "std::vector<>::_M_allocate") && !matches("a*a", "a") && matches("*", ""));

/// The list, sorted for the search: most names of a program match nothing.
struct SortedPatterns {
  SortedPatterns() {
    for (const std::string_view each : patterns) {
      if (each.find('*') == std::string_view::npos)
        names.insert(each);
      else
        by_first[static_cast<unsigned char>(each.front())].push_back(each);
    }
  }

  bool has(std::string_view name) const {
    if (name.empty()) return false;
    const auto is_match = [name](std::string_view pattern) { return matches(pattern, name); };
    const std::vector<std::string_view>& beginnings = by_first.at(static_cast<unsigned char>(name.front()));
    return names.contains(name) || std::any_of(beginnings.begin(), beginnings.end(), is_match) ||
           std::any_of(by_first['*'].begin(), by_first['*'].end(), is_match);
  }

  std::unordered_set<std::string_view> names;               // patterns without "*"
  std::array<std::vector<std::string_view>, 256> by_first;  // the others, by their first character
};

/// A function of a standard library by its file: "/include/c++/12/bits/stl_vector.h:_M_allocate". Empty: it is of none,
/// or its name has a namespace. clang's -gline-tables-only and rustc's line-tables-only leave namespaces out.
std::string name_by_file(std::string_view function, std::string_view file) {
  if (function.empty() || function.find("::") != function.npos) return {};
  for (const char* const folder : {"/include/c++/", "/rustc", "/hashbrown-"}) {
    const std::size_t at = file.rfind(folder);
    if (at != file.npos) return std::string(file.substr(at)) + ":" + std::string(function);
  }
  return {};
}

}  // namespace

bool is_allocation_function(std::string_view function, std::string_view file) {
  static const SortedPatterns sorted;
  const bool is_short = function.find_first_of("(< ") == std::string_view::npos;
  const std::string shortened = is_short ? std::string() : short_name(function);
  std::string_view name = is_short ? function : std::string_view(shortened);
  if (name.ends_with("<>")) name.remove_suffix(2);
  if (constexpr std::string_view alias = "__GI_"; name.starts_with(alias)) name.remove_prefix(alias.size());
  return sorted.has(name) || (!file.empty() && sorted.has(name_by_file(name, file)));
}

}  // namespace cmt::analysis
