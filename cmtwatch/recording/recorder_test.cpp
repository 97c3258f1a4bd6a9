// Names of figures are parsed, and missing counters are reported with the number of processes.
#include "cmtwatch/recording/recorder.h"

#include <doctest/doctest.h>

using namespace cmt;
using namespace cmt::watch;

TEST_CASE("measures: those that are named, alone") {
  CHECK(names_of(parse_measures("io,totals").value()) == "statm,totals,io");
  CHECK(names_of(parse_measures("stacks").value()) == "statm,mappings,stacks");
  CHECK(names_of(parse_measures("statm").value()) == "statm");
  CHECK(names_of(parse_measures("all").value()) == "statm,mappings,stacks,totals,io,oom,system,disks,groups,counters");
}

TEST_CASE("measures: of how many processes there are no counters, where it is not all of them") {
  CHECK(FiguresMissing{"Not supported", 57, 57}.text() == "Not supported");
  CHECK(FiguresMissing{"Not permitted", 1, 1057}.text() == "1 of 1,057 processes: Not permitted");
}

TEST_CASE("measures: unknown and empty names are refused") {
  for (const char* names : {"", "io,", ",io", "IO", "io oom", "everything"}) CHECK_FALSE(parse_measures(names));
}
