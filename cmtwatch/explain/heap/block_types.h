/// The types of C++ objects in blocks. An object with virtual functions begins with the address of its type's table of
/// functions. The word before that table is the address of the type's description, which has its name.
#pragma once

#include <string>
#include <vector>

#include "cmtwatch/explain/heap/page_book.h"

namespace cmt::watch::explain {

/// Live blocks that begin with an object of a type.
struct TypedBlocks {
  std::string type{};  ///< "app::Node"
  BlockGroup blocks{};
};

/// The types whose blocks keep most free memory, at most `most`. A type without a name, as in programs built without
/// run-time type information, is left out.
std::vector<TypedBlocks> name_types(AddressSpace& memory, const HeapFigures& figures, std::size_t most);

}  // namespace cmt::watch::explain
