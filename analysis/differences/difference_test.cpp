// Checks how --diff matches the functions of two traces, and the changes that it reports.
#include "analysis/differences/difference.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "analysis/differences/merged_stacks.h"
#include "toolkit/command/complaints.h"

namespace cmt::analysis {
namespace {

/// A program that was built and traced: its functions have other addresses than in another build, and some are inlined.
class Build {
 public:
  explicit Build(std::uint64_t seed, const std::string& version = "1") : random_(seed) {
    app_.path = "/opt/app" + version;
    library_.path = "/lib/libx.so." + version;
    for (Module* const module : {&app_, &library_}) ids_.push_back(stacks_.add_module(*module));
  }

  /// The functions of a chain, the outermost first: "abX" is main a, b in the program and X in the library.
  StackId stack(const std::string& chain) {
    StackId at = 0;
    for (std::size_t i = 0; i < chain.size();) {
      std::size_t count = 1;
      const auto is_of_library = [&](std::size_t place) { return chain[place] >= 'A' && chain[place] <= 'Z'; };
      while (i + count < chain.size() && random_() % 2 == 0 && is_of_library(i + count) == is_of_library(i)) ++count;
      at = stacks_.add_node({at, frame(chain.substr(i, count), ids_[is_of_library(i)])});
      i += count;
    }
    return at;
  }

  void allocate(const std::string& chain, std::uint64_t size, bool is_freed) {
    Event event{.kind = Kind::malloc, .size = size, .tag = ++last_tag_};
    event.stack = stack(chain);
    counter_.count_event(event);
    if (is_freed) counter_.count_event({.kind = Kind::free, .old_tag = last_tag_});
  }

  void finish() { uses_ = counter_.finish(); }
  DiffSide side() const { return {stacks_, uses_}; }

 private:
  FrameId frame(const std::string& functions, ModuleId module) {
    const FrameId id = stacks_.add_frame({module, (random_() % 0xfffffff) << 8 | stacks_.frame_count(), false});
    std::vector<FrameName> names;
    for (auto function = functions.rbegin(); function != functions.rend(); ++function)
      names.push_back({.function = std::string_view(&*function, 1), .file = "a.cpp", .line = 1});
    stacks_.set_names(id, names);
    return id;
  }

  std::mt19937_64 random_;
  Module app_, library_;
  std::vector<ModuleId> ids_;
  StackTable stacks_;
  command::Complaints complaints_{false, [](const std::string&) {}};
  UseCounter counter_{UseOptions{}, complaints_};
  Uses uses_;
  Tag last_tag_ = 0;
};

void allocate_at_random(Build& build, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    std::string chain = "m";
    for (std::uint64_t depth = random() % 5; depth != 0; --depth) chain += "abcdXY"[random() % 6];
    build.allocate(chain, random() % 1000, random() % 2 == 0);
  }
  build.finish();
}

Difference difference_of(const Build& before, const Build& after, const GroupOptions<DiffUse>& options = {}) {
  const MergedStacks merged = merge_stacks(before.side(), after.side(), options);
  return find_difference(merged.stacks, merged.uses, options);
}

TEST_CASE("difference: there is none between two builds that allocate the same, however they inline") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Build before(seed, "1"), after(seed + 100, "2.5");
    allocate_at_random(before, seed);
    allocate_at_random(after, seed);
    for (const By by : {By::function, By::caller, By::library, By::line}) {
      const Difference report = difference_of(before, after, {.by = by});
      CHECK(report.contributors.empty());
      CHECK(report.stacks.empty());
      CHECK(report.lifetimes.empty());
      CHECK(report.change_sum == 0);
    }
  }
}

TEST_CASE("difference: from B to A it is that from A to B with the other sign") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Build a(seed), b(seed + 50);
    allocate_at_random(a, seed);
    allocate_at_random(b, seed + 1000);
    const Difference there = difference_of(a, b), back = difference_of(b, a);
    REQUIRE(there.contributors.size() == back.contributors.size());
    CHECK(there.change == -back.change);
    CHECK(there.change_sum == back.change_sum);
    for (std::size_t i = 0; i < there.contributors.size(); ++i) {
      CHECK(there.contributors[i].name == back.contributors[i].name);
      CHECK(there.contributors[i].change == -back.contributors[i].change);
      CHECK(there.contributors[i].share == -back.contributors[i].share);
      CHECK(there.contributors[i].is_new == back.contributors[i].is_gone);
      CHECK(there.contributors[i].inclusive.before == back.contributors[i].inclusive.after);
    }
    std::multiset<std::int64_t> changes, changes_back;
    for (const ChangedStack& each : there.stacks) changes.insert(each.change);
    for (const ChangedStack& each : back.stacks) changes_back.insert(-each.change);
    CHECK(changes == changes_back);
  }
}

TEST_CASE("difference: what a contributor has in each trace is what the trace's own report says") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Build a(seed), b(seed + 50);
    allocate_at_random(a, seed);
    allocate_at_random(b, seed + 1000);
    const Difference report = difference_of(a, b, {.metric = Metric::bytes});
    std::map<std::string, Contributor> before, after;
    for (const auto& [build, found] : {std::pair(&a, &before), std::pair(&b, &after)}) {
      for (Contributor& each : find_contributors(build->side().stacks, build->side().uses, {}).contributors)
        found->emplace(each.name, each);
    }
    std::set<std::string> names;
    for (const ChangedContributor& each : report.contributors) {
      CAPTURE(each.name);
      names.insert(each.name);
      CHECK(each.self.before == before[each.name].self);
      CHECK(each.self.after == after[each.name].self);
      CHECK(each.inclusive.before == before[each.name].inclusive);
      CHECK(each.inclusive.after == after[each.name].inclusive);
      CHECK(each.before == before[each.name].lifetimes);
      CHECK(each.after == after[each.name].lifetimes);
    }
    for (const auto& [name, contributor] : before)
      CHECK((names.contains(name) || contributor.self == after[name].self));
    const auto sum = [](const DiffSide& side) {
      std::uint64_t bytes = 0;
      for (const Uses::Entry& entry : side.uses.entries) bytes += entry.use.allocated.bytes;
      return static_cast<std::int64_t>(bytes);
    };
    CHECK(report.change == sum(b.side()) - sum(a.side()));
  }
}

TEST_CASE("difference: the largest change comes first, and what is new or gone is told") {
  Build before(1), after(2);
  for (int i = 0; i < 10; ++i) {
    before.allocate("mab", 100, false);
    after.allocate("mab", 100, false);
    after.allocate("mac", 50, false);
    before.allocate("mX", 70, false);
  }
  after.allocate("mab", 10, false);
  before.finish();
  after.finish();
  const Difference report = difference_of(before, after, {.metric = Metric::live, .top = 2});
  REQUIRE(report.contributors.size() == 2);
  CHECK(report.contributors[0].name == "X");
  CHECK(report.contributors[0].change == -700);
  CHECK(report.contributors[0].is_gone);
  CHECK(report.contributors[0].share == doctest::Approx(-700.0 / 1210));
  CHECK(report.contributors[1].name == "c");
  CHECK(report.contributors[1].is_new);
  CHECK(report.left_out == 1);
  CHECK(report.change == 500 - 700 + 10);
  REQUIRE(report.stacks.size() == 3);
  CHECK(report.stacks[0].stack[0].library == "libx.so.1");
  CHECK(report.stacks[1].stack[0].function == "c");
  CHECK_FALSE(difference_of(before, after, {.metric = Metric::live, .hidden = "[cX]"}).contributors[0].is_new);
  CHECK(difference_of(before, after, {.metric = Metric::live, .charges = {.skipped = "^c$"}}).contributors[1].name ==
        "a");
}

TEST_CASE("difference: sets that are no stacks are matched by name") {
  Uses before, after;
  Use use;
  use.allocated = {{.bytes = 10, .blocks = 1}};
  before.entries.push_back({1, use, {}, "thread 0"});
  before.entries.push_back({2, use, {}, "thread 1 (gone)"});
  use.allocated.bytes = 30;
  after.entries.push_back({1, use, {}, "thread 1 (new)"});
  after.entries.push_back({2, use, {}, "thread 0"});
  const Difference report = find_difference({}, merge_sets(before, after), {.by = By::thread, .metric = Metric::bytes});
  REQUIRE(report.contributors.size() == 3);
  CHECK(report.contributors[0].name == "thread 1 (new)");
  CHECK(report.contributors[0].is_new);
  CHECK(report.contributors[1].change == 20);
  CHECK(report.contributors[2].is_gone);
}

TEST_CASE("difference: names lose versions and what compilers append") {
  CHECK(unversioned("libx.so.1.2") == "libx.so");
  CHECK(unversioned("libpython3.11.so.1.0") == "libpython3.11.so");
  CHECK(unversioned("libx.so.old") == "libx.so.old");
  CHECK(unversioned("app.1") == "app.1");
  CHECK(without_clone("f.constprop.0.isra.1") == "f");
  CHECK(without_clone("f(int) [clone .part.0]") == "f(int)");
  CHECK(without_clone("operator.cold") == "operator");
  CHECK(without_clone("g(a.b)") == "g(a.b)");
  CHECK(bare_name("void (anonymous namespace)::f<int const&, char [2]>(int) const").text ==
        "(anonymous namespace)::f<int&,char[2]>");
  CHECK(bare_name("(anonymous namespace)::f<const int&, char[2]>").text == "(anonymous namespace)::f<int&,char[2]>");
  CHECK(bare_name("f<constant>").text == "f<constant>");
  CHECK(bare_name("f(int)").had_signature);
  CHECK_FALSE(bare_name("main").had_signature);
}

}  // namespace
}  // namespace cmt::analysis
