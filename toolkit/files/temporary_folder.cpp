// Tries the places in turn: a TMPDIR of another machine or container may not be there.
#include "toolkit/files/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace cmt::files {

std::string make_temporary_folder(const std::string& begin) {
  std::vector<std::string> places{"/tmp"};
  if (const char* const given = std::getenv("TMPDIR"); given != nullptr && *given != 0)
    places.insert(places.begin(), given);
  std::string tried;
  for (const std::string& place : places) {
    std::string folder = place + "/" + begin + "XXXXXX";
    if (::mkdtemp(folder.data()) != nullptr) return folder;
    tried += (tried.empty() ? "" : " or ") + place;
  }
  throw std::runtime_error("cannot create a temporary folder in " + tried + ": " + std::strerror(errno));
}

}  // namespace cmt::files
