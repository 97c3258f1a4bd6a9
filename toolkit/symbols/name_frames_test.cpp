// Checks names of frames in all forms of debug information, in damaged files and JIT lists, and demangling.

#include "toolkit/symbols/name_frames.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/symbols/watched_fifo.h"
#include "toolkit/symbols/demangle.h"
#include "toolkit/symbols/module_file.h"
#include "toolkit/symbols/perf_map.h"

namespace cmt::symbols {
namespace {

[[maybe_unused]] const int without_server = unsetenv("DEBUGINFOD_URLS");  // no test asks the network

const std::string samples = CMT_SYMBOL_SAMPLES;
const std::string sample_id = "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67";

/// An address that a sample has printed, with the functions and lines that symbols should give.
struct Expected {
  bool is_exact = false;
  std::uint64_t address = 0;
  std::vector<std::pair<std::string, std::uint32_t>> functions;
};

struct SampleRun {
  std::uint64_t bias = 0;
  std::vector<Expected> places;
};

/// Runs a sample and reads what it prints.
SampleRun run_sample(const std::string& name) {
  SampleRun run;
  std::FILE* const pipe = popen((samples + "/" + name).c_str(), "r");
  REQUIRE(pipe != nullptr);
  char line[1024];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::string text(line);
    if (!text.empty() && text.back() == '\n') text.pop_back();
    std::istringstream fields(text);
    std::string kind, address, function, number;
    std::getline(fields, kind, '\t');
    std::getline(fields, address, '\t');
    const std::uint64_t value = std::stoull(address, nullptr, 16);
    if (kind == "bias") {
      run.bias = value;
      continue;
    }
    Expected place{kind == "exact", value, {}};
    while (std::getline(fields, function, '\t')) {
      number = "0";
      std::getline(fields, number, '\t');
      place.functions.emplace_back(function, static_cast<std::uint32_t>(std::stoul(number)));
    }
    run.places.push_back(place);
  }
  pclose(pipe);
  REQUIRE(run.places.size() == 7);
  return run;
}

/// The names of one frame: "inner 31, outer 38".
std::string names_text(const StackTable& stacks, FrameId frame, bool with_lines = true) {
  std::string text;
  for (const FrameName& name : stacks.names(frame)) {
    text += (text.empty() ? "" : ", ") + std::string(name.function.empty() ? "?" : name.function);
    if (with_lines && name.line != 0) text += " " + std::to_string(name.line);
    if (name.line != 0) CHECK(name.file.ends_with("tests/symbols/sample.cpp"));
  }
  return text;
}

std::string expected_text(const Expected& place) {
  std::string text;
  for (const auto& [function, line] : place.functions) {
    text += (text.empty() ? "" : ", ") + function + (line != 0 ? " " + std::to_string(line) : "");
  }
  return text;
}

struct Named {
  StackTable stacks;
  std::vector<FrameId> frames;
  NamingCounts counts;
  std::vector<std::string> messages;
};

/// Looks up the places of a run in a file.
Named name_places(const SampleRun& run, const Module& module, std::vector<std::string> debug_directories = {}) {
  Named named;
  const ModuleId id = named.stacks.add_module(module);
  for (const Expected& place : run.places)
    named.frames.push_back(named.stacks.add_frame({id, place.address, place.is_exact}));
  named.counts = name_frames(named.stacks, named.frames,
                             {.debug_directories = std::move(debug_directories),
                              .perf_map = {},
                              .say = [&](const std::string& message) { named.messages.push_back(message); }});
  return named;
}

Module sample_module(const SampleRun& run, const std::string& name, const std::string& id = sample_id) {
  Module module;
  module.path = samples + "/" + name;
  module.build_id = id;
  module.bias = run.bias;
  return module;
}

TEST_CASE("functions, inlined ones among them, and lines are found in every form of debug information") {
  for (const std::string name : {"pie", "fixed", "dwarf4", "split", "split4", "exported"}) {
    CAPTURE(name);
    const SampleRun run = run_sample(name);
    CHECK((run.bias == 0) == (name == "fixed"));
    const Named named = name_places(run, sample_module(run, name));
    CHECK(named.messages.empty());
    CHECK(named.counts.frames == 7);
    CHECK(named.counts.with_function == 7);
    CHECK(named.counts.with_line >= 5);
    for (std::size_t i = 0; i < run.places.size(); ++i) {
      const bool has_lines = !run.places[i].is_exact;
      CHECK(names_text(named.stacks, named.frames[i], has_lines) == expected_text(run.places[i]));
    }
  }
}

TEST_CASE("a separate debug file is found by the build id, also where the program itself is gone") {
  const SampleRun run = run_sample("stripped");
  for (const std::string name : {"stripped", "gone"}) {
    CAPTURE(name);
    const Named named = name_places(run, sample_module(run, name), {samples + "/debug"});
    CHECK(named.messages.empty());
    for (std::size_t i = 0; i < run.places.size(); ++i) {
      CHECK(names_text(named.stacks, named.frames[i], !run.places[i].is_exact) == expected_text(run.places[i]));
    }
  }
}

/// A folder with copies of samples, which the destructor removes.
class SampleFolder {
 public:
  SampleFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cmt.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~SampleFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  /// A copy of a sample, with each `from` replaced by `to`, which is as long.
  Module copy(const SampleRun& run, const std::string& name, const std::string& from = {},
              const std::string& to = {}) const {
    std::ifstream file(samples + "/" + name, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    REQUIRE(from.size() == to.size());
    for (auto at = bytes.find(from); !from.empty() && at != bytes.npos; at = bytes.find(from, at + 1))
      bytes.replace(at, from.size(), to);
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
    Module module = sample_module(run, name);
    module.path = path_ + "/" + name;
    return module;
  }

 private:
  std::string path_;
};

TEST_CASE("a separate debug file is found by the module's link, beside it and below the directories") {
  const SampleRun run = run_sample("linked");
  const auto check = [&](const Named& named, bool has_lines) {
    CHECK(named.messages.empty());
    CHECK((named.counts.with_line != 0) == has_lines);
  };
  check(name_places(run, sample_module(run, "linked")), true);
  const SampleFolder folder;
  const Module module = folder.copy(run, "linked");
  check(name_places(run, module), false);
  std::filesystem::create_directory(folder.path() + "/.debug");
  std::filesystem::copy(samples + "/linked.debug", folder.path() + "/.debug/linked.debug");
  check(name_places(run, module), true);
  std::filesystem::remove_all(folder.path() + "/.debug");
  const std::string below = folder.path() + "/dir" + folder.path();
  std::filesystem::create_directories(below);
  std::filesystem::copy(samples + "/linked.debug", below + "/linked.debug");
  check(name_places(run, module, {folder.path() + "/dir"}), true);
  std::filesystem::copy(samples + "/exported", below + "/linked.debug",
                        std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(below + "/linked.debug", 100);  // another file than the link says
  check(name_places(run, module, {folder.path() + "/dir"}), false);
}

TEST_CASE("a module that is a FIFO is reported and not opened") {
  const SampleFolder folder;
  const std::string path = folder.path() + "/fifo";
  const fixture::WatchedFifo fifo(path);
  Module module;
  module.path = path;
  const Named named = name_places(run_sample("pie"), module);
  REQUIRE(named.messages.size() == 1);
  CHECK(named.messages[0] == path + ": is no regular file; its functions are not named");
  CHECK(!fifo.was_opened());
}

TEST_CASE("a debug link or a build id that leads to a FIFO is not followed") {
  const SampleRun run = run_sample("linked");
  const SampleFolder folder;
  const Module module = folder.copy(run, "linked");
  const std::string by_id = folder.path() + "/.build-id/01";
  std::filesystem::create_directories(by_id);
  std::filesystem::create_directory(folder.path() + "/.debug");
  const fixture::WatchedFifo beside(folder.path() + "/linked.debug"), below(folder.path() + "/.debug/linked.debug"),
      found_by_id(by_id + "/23456789abcdef0123456789abcdef01234567.debug");
  const Named named = name_places(run, module, {folder.path()});
  CHECK(named.counts.with_line == 0);
  CHECK(!beside.was_opened());
  CHECK(!below.was_opened());
  CHECK(!found_by_id.was_opened());
}

TEST_CASE("a split unit whose file is a FIFO is not opened") {
  namespace fs = std::filesystem;
  const SampleRun run = run_sample("split");
  const std::string build = fs::path(samples).parent_path().parent_path().string();  // where it was compiled
  const SampleFolder folder;
  if (build.size() < folder.path().size()) return;
  std::string elsewhere = folder.path();
  elsewhere.resize(build.size(), '/');
  fs::path unit;
  for (const auto& entry : fs::recursive_directory_iterator(samples + "/CMakeFiles/symbol_sample_split.dir"))
    if (entry.path().extension() == ".dwo") unit = fs::relative(entry.path(), build);
  REQUIRE(!unit.empty());
  fs::create_directories((folder.path() / unit).parent_path());
  const Module module = folder.copy(run, "split", build, elsewhere);
  fs::copy(build / unit, folder.path() / unit);
  CHECK(name_places(run, module).counts.with_line >= 5);
  fs::remove(folder.path() / unit);
  const fixture::WatchedFifo fifo((folder.path() / unit).string());
  CHECK(name_places(run, module).counts.with_function == 7);
  CHECK(!fifo.was_opened());
}

TEST_CASE("without debug information functions are those of the symbol table, without inlined ones") {
  const SampleRun run = run_sample("exported_only");
  const Named named = name_places(run, sample_module(run, "exported_only"));
  CHECK(named.messages.empty());
  CHECK(named.counts.with_line == 0);
  for (std::size_t i = 0; i < run.places.size(); ++i) {
    CHECK(names_text(named.stacks, named.frames[i]) == run.places[i].functions.back().first);
  }
}

TEST_CASE("functions without symbols are named by where they begin, and code of no function has one empty name") {
  const SampleRun run = run_sample("stripped");
  const Named named = name_places(run, sample_module(run, "stripped"));
  CHECK(named.messages.empty());
  CHECK(named.counts.with_function == 0);
  const auto name_of = [&](const std::string& function) {
    for (std::size_t i = 0; i < run.places.size(); ++i) {
      if (run.places[i].functions.back().first == function) return names_text(named.stacks, named.frames[i]);
    }
    return std::string("not found");
  };
  const auto outer =
      std::find_if(run.places.begin(), run.places.end(), [](const Expected& place) { return place.is_exact; });
  CHECK(name_of("outer(int)") == nameless_function("stripped", outer->address - run.bias));
  CHECK(name_of("plain_c") != name_of("outer(int)"));
  CHECK(name_of("unsized_code") == "?");
}

TEST_CASE("a frame without a symbol is looked up again") {
  const SampleRun run = run_sample("stripped");
  Named named = name_places(run, sample_module(run, "stripped"));
  std::vector<double> shares;
  const auto counts = name_frames(
      named.stacks, named.frames,
      {.debug_directories = {samples + "/debug"}, .show = [&shares](double share) { shares.push_back(share); }});
  CHECK(counts.frames == 7);
  CHECK((shares.size() > 1 && std::is_sorted(shares.begin(), shares.end()) && shares.back() == 1));
  CHECK(counts.with_function == 7);
  CHECK(name_all_frames(named.stacks, {}).frames == 0);
}

TEST_CASE("a file that has changed, is gone or is no program is reported, and its frames have no names") {
  const SampleRun run = run_sample("pie");
  const auto message_of = [&](const Module& module) {
    const Named named = name_places(run, module);
    for (const FrameId frame : named.frames) CHECK(named.stacks.names(frame).empty());
    return named.messages.size() == 1 ? named.messages.front() : "no message";
  };
  CHECK(message_of(sample_module(run, "pie", "\x12\xef")) ==
        samples +
            "/pie: has changed since the recording (build id 0123456789abcdef0123456789abcdef01234567, recorded 12ef)"
            "; its functions are not named");
  CHECK(message_of(sample_module(run, "gone")) ==
        samples + "/gone: No such file or directory; its functions are not named");
  CHECK(message_of(sample_module(run, "CTestTestfile.cmake")) ==
        samples + "/CTestTestfile.cmake: is no ELF file; its functions are not named");
  CHECK(message_of(sample_module(run, "debug")) == samples + "/debug: is no regular file; its functions are not named");
}

TEST_CASE("names that a frame has stay, and a file that is loaded twice is looked up as one") {
  const SampleRun run = run_sample("pie");
  StackTable stacks;
  Module module = sample_module(run, "pie");
  const ModuleId first = stacks.add_module(module);
  module.bias += 0x10000000;
  const ModuleId second = stacks.add_module(module);
  const Expected& place = run.places.back();
  const FrameId a = stacks.add_frame({first, place.address, place.is_exact});
  const FrameId b = stacks.add_frame({second, place.address + 0x10000000, place.is_exact});
  const FrameId c = stacks.add_frame({second, run.places.front().address + 0x10000000, true});
  const FrameName known{.function = "known", .file = {}};
  stacks.set_names(c, {&known, 1});
  CHECK(name_all_frames(stacks, {}).frames == 2);
  CHECK(names_text(stacks, a) == expected_text(place));
  CHECK(names_text(stacks, b) == expected_text(place));
  CHECK(names_text(stacks, c) == "known");
}

TEST_CASE("an interpreter's lines are looked up in no file") {
  StackTable stacks;
  const ModuleId python = stacks.add_module({.path = std::string(python_module_path)});
  stacks.add_frame({python, 1, true});
  std::string said;
  CHECK(name_all_frames(stacks, {.say = [&](const std::string& message) { said += message; }}).frames == 0);
  CHECK(said.empty());
  CHECK(stacks.names(1).empty());
}

TEST_CASE("the kernel's own code in a process has names") {
  void* const vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (vdso == nullptr) return;
  const auto function = reinterpret_cast<std::uint64_t>(dlsym(vdso, "__vdso_clock_gettime"));
  StackTable stacks;
  Module module;
  module.path = "[vdso]";
  module.bias = getauxval(AT_SYSINFO_EHDR);
  const FrameId frame = stacks.add_frame({stacks.add_module(module), function, true});
  name_all_frames(stacks, {});
  CHECK(names_text(stacks, frame).ends_with("clock_gettime"));
}

TEST_CASE("functions of a JIT compiler come from its list, the last one where memory was used again") {
  const std::string path = "perf-4711.map";
  std::ofstream(path)
      << "1000 40 old\n1040 10 LazyCompile:~parse app.js:12\nxyz\n10 \n\n0x0000000000001000 0x20 new one\n"
      << "ffffffffffffff00 200 wraps\n2000 10";
  StackTable stacks;
  const FrameId first = stacks.add_frame({0, 0x1010, false});
  const FrameId second = stacks.add_frame({0, 0x1050, false});  // the call is the instruction before
  const FrameId third = stacks.add_frame({0, 0x1030, true});
  const FrameId last = stacks.add_frame({0, 0x3000, true});
  name_all_frames(stacks, {.perf_map = path});
  CHECK(names_text(stacks, first) == "new one");
  CHECK(names_text(stacks, second) == "parse app.js:12");
  CHECK(names_text(stacks, third) == "old");
  CHECK(stacks.names(last).empty());
  std::filesystem::remove(path);
}

TEST_CASE("V8's tiers of a function are one function") {
  for (const char* const kind :
       {"LazyCompile:~", "LazyCompile:*", "JS:^", "JS:+", "JS:*'", "JS:o+", "JS:o*'", "Function:"})
    CHECK(without_tier(std::string(kind) + "parse file:///app.js:12:3") == "parse file:///app.js:12:3");
  CHECK(without_tier("JS:~ file:///app.js:14:1") == "<anonymous> file:///app.js:14:1");
  CHECK(without_tier("JS:*object app.js:1:1") == "object app.js:1:1");
  CHECK(without_tier("Builtin:ArrayMap") == "Builtin:ArrayMap");
  CHECK(without_tier("py::load:/app/rows.py") == "py::load:/app/rows.py");
}

TEST_CASE("the list of a JIT compiler is that of the recorded process, not of one before") {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  Header header;
  CHECK(perf_map_of(header).empty());
  header.metadata = {{"pid", "12/../../etc/passwd"}};
  CHECK(perf_map_of(header).empty());
  header.metadata = {{"pid", std::to_string(getpid())}, {"start", "2026-11-22T10:00:00Z"}};
  CHECK(perf_map_of(header) == path);
  std::ofstream(path) << "1000 40 old\n";
  std::filesystem::last_write_time(path,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 36500));
  CHECK(perf_map_of(header).empty());
  std::filesystem::remove(path);
}

TEST_CASE("a list that node has made, and that is gone, is reported") {
  const auto said_of = [](const std::string& module, bool is_named) {
    StackTable stacks;
    stacks.add_module({.path = module, .begin = 0x400000, .end = 0x500000});
    const FrameId named = stacks.add_frame({0, 0x1000, true});
    stacks.add_frame({0, 0x2000, true});
    const FrameName name{.function = "render /srv/app.js:6:16", .file = {}};
    if (is_named) stacks.set_names(named, {&name, 1});
    std::string said;
    name_all_frames(stacks, {.perf_map = "perf-4713.map", .say = [&](const std::string& text) { said += text; }});
    return said;
  };
  const std::string gone = "there is no perf-4713.map, node's list of its functions: those of JavaScript are not named";
  CHECK(said_of("/usr/bin/node", false) == gone);
  CHECK(said_of("/usr/lib/x86_64-linux-gnu/libnode.so.108", false) == gone);
  CHECK(said_of("/usr/bin/node", true) == "");
  CHECK(said_of("/usr/bin/nodes", false) == "");
  std::ofstream("perf-4713.map") << "3000 40 f\n";
  CHECK(said_of("/usr/bin/node", false) == "");
  std::filesystem::remove("perf-4713.map");
}

TEST_CASE("a list of a JIT compiler is read from a regular file only, which belongs to this user") {
  const std::string path = "perf-4712.map";
  StackTable stacks;
  const FrameId frame = stacks.add_frame({0, 0x1010, true});
  const auto message = [&] {
    std::string said;
    name_all_frames(stacks, {.perf_map = path, .say = [&](const std::string& text) { said += text; }});
    CHECK(stacks.names(frame).empty());
    std::filesystem::remove(path);
    return said;
  };
  CHECK(message() == "");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(message() == path + ": is no regular file; functions of a JIT compiler are not named");
  std::ofstream("list") << "1000 40 f\n";
  std::filesystem::create_symlink("list", path);
  CHECK(message().ends_with("; functions of a JIT compiler are not named"));
  if (geteuid() == 0) {
    std::ofstream(path) << "1000 40 f\n";
    REQUIRE(chown(path.c_str(), 4711, 4711) == 0);
    CHECK(message() == path + ": belongs to another user; functions of a JIT compiler are not named");
  }
  std::filesystem::remove("list");
}

TEST_CASE("a module without a build id is not looked up in a file that is newer than the recording") {
  const SampleRun run = run_sample("pie");
  Header header;
  CHECK(!start_of(header));
  for (const bool is_newer : {false, true}) {
    header.metadata = {{"start", is_newer ? "2001-09-09T01:46:40Z" : "2286-11-20T17:46:40Z"}};
    REQUIRE(start_of(header) == (is_newer ? 1'000'000'000 : 10'000'000'000));
    StackTable stacks;
    stacks.add_frame({stacks.add_module(sample_module(run, "pie", "")), run.places[0].address, run.places[0].is_exact});
    std::string said;
    NamingOptions options{.start = start_of(header), .say = [&](const std::string& text) { said += text; }};
    CHECK(name_all_frames(stacks, options).with_function == (is_newer ? 0 : 1));
    CHECK(said ==
          (is_newer
               ? samples + "/pie: is newer than the recording, and has no recorded build id to compare; its functions "
                           "are not named"
               : ""));
  }
}

TEST_CASE("damaged programs give fewer names, or a message, and no crash") {
  const SampleRun run = run_sample("pie");
  for (const std::string name : {"pie", "split"}) {
    std::ifstream file(samples + "/" + name, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(file)), {});
    std::mt19937 random(7);
    for (int round = 0; round < 150; ++round) {
      std::string bytes = whole;
      if (round % 10 == 0) bytes.resize(random() % bytes.size());
      const std::size_t window = round % 3 == 0 ? 256 : bytes.size();  // the headers, or anything
      for (int i = 0; i < 40 && !bytes.empty(); ++i)
        bytes[random() % std::min(window, bytes.size())] = static_cast<char>(random());
      std::ofstream(samples + "/damaged", std::ios::binary) << bytes;
      const Named named = name_places(run, sample_module(run, "damaged", ""));
      CHECK(named.counts.with_function <= 7);
    }
  }
  std::filesystem::remove(samples + "/damaged");
}

TEST_CASE("names are demangled, Rust's too, and all others stay") {
  CHECK(demangled("_ZN4list4pushEi") == "list::push(int)");
  CHECK(demangled("malloc") == "malloc");
  CHECK(demangled("_Znonsense") == "_Znonsense");
  CHECK(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE") == "core::fmt::Write::write_fmt");
  CHECK(demangled("_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE") ==
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop");
  CHECK(demangled("_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE") == "main::main::{{closure}}");
  CHECK(demangled("_ZN11a$unknown$b17h0123456789abcdefE") == "a$unknown$b");
  CHECK(demangled("_ZN6a$LT$b10not_a_hashE") == "a$LT$b::not_a_hash");
  CHECK(demangled("_RNvCs1234_7mycrate3foo") == "mycrate::foo");
}

TEST_CASE("Rust's names of the v0 form are read by its grammar") {
  CHECK(demangled(
            "_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecNtNtB7_6string6StringE8grow_oneCsjrHSEGnQ3l9_3std") ==
        "<alloc::raw_vec::RawVec<alloc::string::String>>::grow_one");
  CHECK(demangled("_RINvMNtCsgEmfK2I1SDS_4core5sliceSh11copy_withinINtNtNtB5_3ops5range14RangeInclusivejEE") ==
        "<[u8]>::copy_within::<core::ops::range::RangeInclusive<usize>>");
  CHECK(demangled("_RNCNvC1a4mains0_0") == "a::main::{closure#2}");
  CHECK(demangled("_RNvYNtC1a1SNtC1b1T1f") == "<a::S as b::T>::f");
  CHECK(demangled("_RINvC1a1fAhj3_TlEFKCRSeEuDNtC1b1TEL_E") ==
        "a::f::<[u8; 3], (i32,), extern \"C\" fn(&[str]), dyn b::T>");
  CHECK(demangled("_RINvC1a1fKb1_Kln5_Kc41_KpE") == "a::f::<true, -5, 'A', _>");
  CHECK(demangled("_RNvC1au8gdel_5qa.llvm.1") ==
        "a::g\xc3\xb6"
        "del");
  for (const char* const bad : {"_R", "_RX", "_RNvC1a", "_RNvC9a1f", "_RB_", "_RNvB0_1f",
                                "_RNvC1a99999999999999999999f", "_RINvC1a1fTTTT", "_Rx", "RNvC1a1f"}) {
    CAPTURE(bad);
    CHECK(demangled(bad) == bad);
  }
}

/// A reference of the v0 form to what begins at `offset`.
std::string v0_reference(std::size_t offset) {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (offset == 0) return "B_";
  std::string text = "_";
  for (std::size_t rest = offset - 1;; rest /= 62) {
    text.insert(0, 1, digits[rest % 62]);
    if (rest < 62) return "B" + text;
  }
}

TEST_CASE("hostile names of every form end in time: nested deep, doubled by references, cut, and noise") {
  const auto repeated = [](const char* part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  for (const int depth : {100, 5000, 200000}) {
    CAPTURE(depth);
    const bool is_read = depth == 100;
    for (const std::string& symbol :
         {"_RINvC1a1f" + repeated("S", depth) + "lE", "_R" + repeated("Nv", depth) + "C1a" + repeated("1f", depth),
          "_Z1f" + repeated("P", depth) + "i"}) {
      CHECK((demangled(symbol) != symbol) == is_read);
    }
    demangled("_ZN" + repeated("1a", depth) + "17h0123456789abcdefE");  // a list, which is not nested
  }

  // Each pair names the one before it twice: 2^40 parts, which the test's limit of time ends.
  std::string rust = "INvC1a1f", cpp = "_Z1f4pairIiiES_IS0_S0_E";
  std::size_t before = rust.size();
  rust += "TllE";
  for (int i = 0; i < 40; ++i) {
    const std::size_t begin = rust.size();
    rust += "T" + v0_reference(before) + v0_reference(before) + "E";
    before = begin;
  }
  rust = "_R" + rust + "E";
  for (const char each : std::string_view("123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    cpp += std::string("S_IS") + each + "_S" + each + "_E";
  CHECK(demangled(rust) == rust);
  CHECK(demangled(cpp) == cpp);

  std::mt19937 random(11);
  for (const std::string& whole :
       {std::string("_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecNtNtB7_6string6StringE8grow_one"),
        std::string("_RINvC1a1fAhj3_TlEFKCRSeEuDNtC1b1TEL_E"), std::string("_RNvC1au8gdel_5qa"),
        std::string("_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE"),
        std::string("_ZNSt6vectorIiSaIiEE9push_backEOi")}) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      CHECK(demangled(whole.substr(0, size)).empty() == (size == 0));
    for (int round = 0; round < 2000; ++round) {
      std::string noisy = whole;
      for (int i = 0; i < 3; ++i) noisy[2 + random() % (noisy.size() - 2)] = static_cast<char>(1 + random() % 255);
      CHECK(!demangled(noisy).empty());
    }
  }
}

}  // namespace
}  // namespace cmt::symbols
