// Checks which functions count as allocation functions.
#include "analysis/stacks/function_names/allocation_functions.h"

#include <doctest/doctest.h>

namespace cmt::analysis {

TEST_CASE("functions that only hand memory on are known by their names") {
  for (const char* const name :
       {"malloc",
        "operator new[](unsigned long)",
        "std::allocator<char>::allocate(unsigned long)",
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, "
        "unsigned long)",
        "void std::__cxx11::basic_string<char>::_M_construct<char const*>(char const*, char const*, "
        "std::forward_iterator_tag)",
        "std::__cxx11::basic_string<char>::_M_mutate(unsigned long, unsigned long, char const*, unsigned long)",
        "std::_Rb_tree<int, std::pair<int const, f(int)>, std::less<int> >::_M_get_node()",
        "int* std::__1::__libcpp_allocate<int>(unsigned long)",
        "std::pair<std::string const, int>::pair(std::pair<std::string const, int> const&)",
        "std::pair<int, std::string>::pair<int, std::string, true>(int&&, std::string&&)",
        "std::_Head_base<0ul, std::string, false>::_Head_base(std::_Head_base<0ul, std::string, false> const&)",
        "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
        "v8::internal::Malloced::operator new(unsigned long)",
        "alloc::alloc::exchange_malloc",
        "<alloc::alloc::Global>::grow_impl_runtime",
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
        "alloc::raw_vec::RawVec<T,A>::grow_one",
        "hashbrown::raw::alloc::inner::do_alloc",
        "<T as alloc::string::ToString>::to_string",
        "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>",
        "<[u8]>::to_vec",
        "<[alloc::string::String]>::join::<&str>",
        "<str>::repeat",
        "__rust_alloc",
        "std::io::buffered::bufwriter::BufWriter<W>::with_capacity",
        "<std::io::buffered::bufreader::BufReader<std::fs::File>>::with_capacity",
        "<std::io::buffered::bufwriter::BufWriter<std::fs::File>>::new",
        "arena_map_get",
        "alloc node:buffer:391:30",
        "createUnsafeBuffer node:internal/buffer:1056:28",
        "_PyObject_Malloc",
        "PyMem_RawMalloc",
        "_PyObject_GC_New",
        "xmalloc",
        "xstrdup",
        "strdup",
        "__GI_strdup",
        "__GI___strdup",
        "__GI___strndup",
        "__GI___libc_malloc",
        "__GI___asprintf",
        "__posix_memalign",
        "__memalign",
        "g_malloc0_n",
        "CRYPTO_zalloc",
        "ruby_xmalloc2",
        "sqlite3DbMallocRaw",
        "palloc0"}) {
    CAPTURE(name);
    CHECK(is_allocation_function(name));
  }
  for (const char* const name : {"my_malloc",
                                 "pool::allocate(int)",
                                 "std::vector<int>::reserve(unsigned long)",
                                 "",
                                 "<<<((",
                                 "f(std::allocator<int>::allocate)",
                                 "PyUnicode_New",
                                 "xml_alloc",
                                 "std::thread::join()",
                                 "main",
                                 "mallocs",
                                 "__GI_",
                                 "__GI___getdelim",
                                 "core::Engine::start(int)",
                                 "<app::Order as core::clone::Clone>::clone",
                                 "<[u8] as app::Codec<[u8]>>::encode",
                                 "<str as app::Codec>::encode",
                                 "alloc /srv/buffer.js:3:1",
                                 "readFileSync node:fs:441:22",
                                 "std::filesystem::__cxx11::path::path(char const*)",
                                 "Order::Order(Order const&)",
                                 "operator newer(int)"}) {
    CAPTURE(name);
    CHECK(!is_allocation_function(name));
  }
}

TEST_CASE("a function without classes and namespaces is known by its file") {
  CHECK(is_allocation_function("allocate", "/usr/include/c++/12/bits/new_allocator.h"));
  CHECK(is_allocation_function("_M_construct<char const*>", "/usr/lib/gcc/../include/c++/12/bits/basic_string.tcc"));
  CHECK(is_allocation_function("pair<int, 0>", "/usr/include/c++/12/bits/stl_pair.h"));
  CHECK(is_allocation_function("operator[]", "/usr/include/c++/12/bits/hashtable_policy.h"));
  CHECK(is_allocation_function("__libcpp_allocate", "/usr/lib/llvm-14/include/c++/v1/new"));
  CHECK(is_allocation_function("grow_impl_runtime", "/rustc/5980/library/alloc/src/alloc.rs"));
  CHECK(is_allocation_function("do_alloc", "/rust/deps/hashbrown-0.15.2/src/raw/mod.rs"));
  CHECK(!is_allocation_function("allocate", "/src/pool.h"));
  CHECK(!is_allocation_function("push_back", "/usr/include/c++/12/bits/stl_vector.h"));
  CHECK(!is_allocation_function("pool::allocate", "/usr/include/c++/12/bits/new_allocator.h"));
  CHECK(!is_allocation_function("main", "/src/library/core/src/main.c"));
  CHECK(!is_allocation_function("", "/usr/include/c++/12/bits/hashtable.h"));
}

}  // namespace cmt::analysis
