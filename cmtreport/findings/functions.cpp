// Adds up nodes by function, as functions.h describes. A function counts as one of the C++ library if its name begins
// with std:: or __gnu_cxx::.

#include "cmtreport/findings/functions.h"

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <string_view>

#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/function_names/short_name.h"

namespace cmt::report {

std::vector<FunctionTotals> totals_by_function(const CallTree& tree, const TotalsByNode& totals,
                                               const ChangesByNode& changes) {
  std::vector<FunctionTotals> found(tree.functions().size());
  for (std::size_t i = 0; i < found.size(); ++i) found[i].function = static_cast<FunctionId>(i);
  totals.for_each([&](CallId node, const NodeTotals& own) {
    NodeTotals& sum = found[index_of(tree.charged_function(node))].totals;
    sum.sum += own.sum;
    sum.peak_bytes += own.peak_bytes;
    sum.peak_blocks += own.peak_blocks;
  });
  for (std::size_t i = 0; i < changes.size(); ++i)
    found[index_of(tree.charged_function(changes.node(i)))].resized_again += changes.resized_again(i);
  return found;
}

namespace {

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [text](auto each) { return text.starts_with(each); });
}

/// Whether a function of Python, or one that no file contains, is of a script and no part of the language.
bool is_of_users_script(const Function& function) {
  const std::string_view name = function.name;
  if (function.is_python)
    return !function.file.starts_with('<') &&
           analysis::python_package(function.file).origin == analysis::PythonOrigin::own;
  if (function.library != "[no module]" || name.empty() ||
      name.find_first_not_of("0123456789abcdef") == std::string_view::npos)
    return false;
  const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return !begins_with_any(name, {"Builtin:", "BytecodeHandler:", "Stub:", "RegExp:", "Ljava/", "Ljdk/", "Lsun/"}) &&
         !has(" node:") && !has(":<frozen") && !has("/lib/python") && !has("-packages/") && !has("/node_modules/");
}

}  // namespace

Callers::Callers(const CallTree& tree, const std::set<std::string>& programs) : tree_(tree) {
  for (const Function& function : tree.functions()) {
    const std::string name = analysis::short_name(function.name);
    is_of_library_.push_back(function.is_allocation || begins_with_any(name, {"std::", "__gnu_cxx::", "[cut"}));
    is_of_script_.push_back(is_of_users_script(function));
    is_of_program_.push_back(programs.contains(function.library) && !is_of_library_.back() &&
                             !begins_with_any(name, {"core::", "<core::"}));
  }
}

FunctionId Callers::own_code_of(CallId node) const {
  FunctionId of_program{};
  for (CallId at = node; at != CallTree::root; at = tree_.at(at).parent) {
    const FunctionId function = tree_.at(at).function;
    if (is_of_script_[index_of(function)]) return function;
    if (of_program == FunctionId{} && is_of_program_[index_of(function)]) of_program = function;
  }
  return of_program != FunctionId{} ? of_program : tree_.at(node).function;
}

FunctionId Callers::caller_of(CallId node) const {
  const std::string& own = tree_.at(tree_.at(node).function).name;
  for (CallId at = tree_.at(node).parent; at != CallTree::root; at = tree_.at(at).parent) {
    const FunctionId function = tree_.at(at).function;
    if (!is_of_library_[index_of(function)] && tree_.at(function).name != own) return function;
  }
  const FunctionId nearest = tree_.at(tree_.at(node).parent).function;
  return tree_.at(nearest).name.starts_with("[cut") ? FunctionId{} : nearest;
}

std::vector<FunctionId> Callers::path_of(CallId node, std::size_t most) const {
  std::vector<FunctionId> path;
  for (; node != CallTree::root && path.size() < most; node = tree_.at(node).parent) {
    const FunctionId function = tree_.at(node).function;
    if (!is_of_library_[index_of(function)]) path.push_back(function);
  }
  return path;
}

namespace {

/// The loader calls the initialisers of libraries. Stacks end in it, or are cut there. A library that the program loads
/// later has the program's functions outside of the loader's.
bool is_made_by_loader(const CallTree& tree, CallId node) {
  FunctionId outermost{};
  for (; node != CallTree::root; node = tree.at(node).parent) {
    const FunctionId function = tree.at(node).function;
    if (!tree.at(function).name.starts_with("[cut")) outermost = function;
  }
  const std::string& library = tree.at(outermost).library;
  return outermost != FunctionId{} && begins_with_any(library, {"ld-linux", "ld-musl", "ld-2.", "ld64.so", "ld.so"});
}

/// Whether a node has the pool for exceptions of libstdc++, in a program without symbols that is linked with it
/// statically. An initialiser of the program, which libc calls before main, asks for one block of the pool's size and
/// keeps it.
bool is_nameless_pool(const CallTree& tree, CallId node, const NodeTotals& totals) {
  constexpr std::uint64_t until_gcc_12 = 72'704, from_gcc_13 = 73'728;
  const std::uint64_t bytes = totals.sum[Measure::leaked_bytes];
  if (totals.sum[Measure::allocated_blocks] != 1 || (bytes != until_gcc_12 && bytes != from_gcc_13)) return false;
  const CallTree::Node& charged = tree.at(tree.charged(node));
  const std::string& caller = tree.at(tree.at(charged.parent).function).name;
  return tree.at(charged.function).name.find("+0x") != std::string::npos &&
         (caller == "call_init" || caller == "libc_start_init");  // glibc's, musl's
}

Stays stays_by_name(const Function& function) {
  const std::string name = analysis::short_name(function.name);
  // libstdc++, in a program that is linked with it statically.
  if (name == "_GLOBAL__sub_I_eh_alloc.cc") return Stays::library;
  return name == "Perl_more_bodies" || name == "Perl_more_sv" ? Stays::pool : Stays::no;
}

}  // namespace

std::vector<Stays> find_staying(const CallTree& tree, const TotalsByNode& totals) {
  std::vector<Stays> staying;
  for (const Function& function : tree.functions()) staying.push_back(stays_by_name(function));
  std::vector<bool> has_loaders(staying.size()), has_others(staying.size());
  totals.for_each([&](CallId node, const NodeTotals& own) {
    const bool is_of_library = is_made_by_loader(tree, node) || is_nameless_pool(tree, node, own);
    (is_of_library ? has_loaders : has_others)[index_of(tree.charged_function(node))] = true;
  });
  for (std::size_t i = 0; i < staying.size(); ++i) {
    if (has_loaders[i] && !has_others[i]) staying[i] = Stays::library;
  }
  return staying;
}

std::vector<FunctionSeries> series_of(const Recording& recording, const ChangesByNode& changes,
                                      const std::vector<FunctionId>& functions) {
  const std::size_t count = recording.last_moment() + 1;
  std::vector<std::size_t> place_of(recording.tree().functions().size(), functions.size());
  std::vector<FunctionSeries> series;
  for (const FunctionId function : functions) {
    assert(place_of[index_of(function)] == functions.size());  // each function comes once
    place_of[index_of(function)] = series.size();
    const std::vector<std::uint64_t> zeros(count);
    series.push_back({function, zeros, zeros, zeros, {}});
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t place = place_of[index_of(recording.tree().charged_function(changes.node(i)))];
    if (place == series.size()) continue;
    if (changes.largest_leaked(i).bytes > series[place].largest.bytes)
      series[place].largest = changes.largest_leaked(i);
    changes.for_each(i, [&](std::size_t moment, const SparseMeasures& measures) {
      series[place].live_bytes[moment] += measures[Measure::live_bytes];
      series[place].leaked_bytes[moment] += measures[Measure::leaked_bytes];
      series[place].leaked_blocks[moment] += measures[Measure::leaked_blocks];
    });
  }
  for (FunctionSeries& each : series) {
    for (std::size_t moment = 1; moment < count; ++moment) {
      each.live_bytes[moment] += each.live_bytes[moment - 1];
      each.leaked_bytes[moment] += each.leaked_bytes[moment - 1];
      each.leaked_blocks[moment] += each.leaked_blocks[moment - 1];
    }
  }
  return series;
}

std::size_t end_of_allocation(const Moments& moments) {
  const std::uint64_t all = moments.allocated_bytes.back(), enough = all - all / 100;
  const auto found = std::lower_bound(moments.allocated_bytes.begin(), moments.allocated_bytes.end(), enough);
  assert(found != moments.allocated_bytes.end());
  return static_cast<std::size_t>(found - moments.allocated_bytes.begin());
}

}  // namespace cmt::report
