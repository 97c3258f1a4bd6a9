/// Adds up nodes by function, finds the callers of a function that findings name, and makes series over the moments.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"

namespace cmt::report {

/// The figures of the allocations that a function is charged with, from all its callers.
struct FunctionTotals {
  FunctionId function{};
  NodeTotals totals{};
  std::uint64_t resized_again = 0;  ///< as ChangesByNode has it
};

/// Returns the totals of each function of the tree, by its number.
std::vector<FunctionTotals> totals_by_function(const CallTree& tree, const TotalsByNode& totals,
                                               const ChangesByNode& changes);

/// Finds the callers that a report names for a node.
class Callers {
 public:
  /// Borrows `tree`. `programs` are the names of the main programs.
  Callers(const CallTree& tree, const std::set<std::string>& programs);
  /// Returns the nearest function outwards that has another name and is not of the C++ library. Without such a function
  /// it is the nearest caller. 0 means that nothing calls the node.
  FunctionId caller_of(CallId node) const;
  /// Returns the nearest function, from the node's own one outwards, of the code that the user has written. It is one
  /// of Python or JavaScript if the stack has such, or else one of the main program, or else the node's own one.
  FunctionId own_code_of(CallId node) const;
  /// Returns the first `most` functions from the node's own one outwards, without those of the C++ library.
  std::vector<FunctionId> path_of(CallId node, std::size_t most) const;

 private:
  const CallTree& tree_;
  std::vector<bool> is_of_library_;                 // by function
  std::vector<bool> is_of_script_, is_of_program_;  // by function: the user's own code
};

/// Why blocks of a function stay until the program ends, although nothing is wrong.
enum class Stays {
  no,
  library,  ///< a library's initialiser made them, before main: the pool for exceptions of libstdc++
  pool,     ///< an interpreter keeps them for later values: the arenas of Perl
};

/// Returns by function why all of its memory stays. The names of such functions are in functions.cpp.
std::vector<Stays> find_staying(const CallTree& tree, const TotalsByNode& totals);

/// The caller, and the function of the user's own code, with most of a figure of a function, and the node with most of
/// it.
struct LargestCaller {
  FunctionId caller{};  ///< 0: nothing calls the function
  std::uint64_t amount = 0;
  FunctionId own_code{};
  std::uint64_t own_amount = 0;
  CallId node{};
};

/// Finds the largest caller of a function. `figure(totals)` returns the figure of a node.
template <class GetFigure>
LargestCaller largest_caller(const CallTree& tree, const Callers& callers, const TotalsByNode& totals,
                             FunctionId function, GetFigure figure) {
  std::vector<std::uint64_t> by_caller(tree.functions().size()), by_own_code(by_caller);
  LargestCaller largest;
  std::uint64_t most_of_node = 0;
  const auto is_of_function = [&](CallId node) { return tree.charged_function(node) == function; };
  totals.for_each_if(is_of_function, [&](CallId allocating, const NodeTotals& own) {
    const CallId node = tree.charged(allocating);
    const std::uint64_t amount = figure(own);
    const FunctionId caller = callers.caller_of(node);
    by_caller[index_of(caller)] += amount;
    if (by_caller[index_of(caller)] > largest.amount) {
      largest.caller = caller;
      largest.amount = by_caller[index_of(caller)];
    }
    const FunctionId own_code = callers.own_code_of(node);
    by_own_code[index_of(own_code)] += amount;
    if (by_own_code[index_of(own_code)] > largest.own_amount) {
      largest.own_code = own_code;
      largest.own_amount = by_own_code[index_of(own_code)];
    }
    if (amount <= most_of_node) return;
    most_of_node = amount;
    largest.node = node;
  });
  return largest;
}

/// The memory of a function that was live at each moment, and the memory that it allocated until then and never freed.
struct FunctionSeries {
  FunctionId function{};
  std::vector<std::uint64_t> live_bytes;
  std::vector<std::uint64_t> leaked_bytes;  ///< allocated up to the moment, live at the end
  std::vector<std::uint64_t> leaked_blocks;
  LargestLeaked largest{};
};

/// Returns the series of some functions, each of them once. Memory: 24 bytes for each function and moment.
std::vector<FunctionSeries> series_of(const Recording& recording, const ChangesByNode& changes,
                                      const std::vector<FunctionId>& functions);

/// Returns the first moment by which 99 % of all bytes were allocated. After it a program that ends only frees.
std::size_t end_of_allocation(const Moments& moments);

}  // namespace cmt::report
