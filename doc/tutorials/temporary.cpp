// Writes the paths of a tree of folders.
#include <cstdio>
#include <string>
#include <vector>

struct Folders {
  std::vector<std::string> names;
};

std::string path_of(const Folders& folders) {
  std::string path;
  for (const std::string& name : folders.names) {
#ifdef FIXED
    path += '/';
    path += name;
#else
    path = path + "/" + name;  // two strings that are gone at once
#endif
  }
  return path;
}

std::size_t write_paths(Folders& folders, int depth) {
  std::size_t written = path_of(folders).size();
  for (int child = 0; child < 4 && depth > 0; ++child) {
    folders.names.push_back("folder-of-level-" + std::to_string(depth));
    written += write_paths(folders, depth - 1);
    folders.names.pop_back();
  }
  return written;
}

int main() {
  Folders folders;
  std::printf("%zu characters\n", write_paths(folders, 6));
}
