// Reads documents, keeps a small entry of each in an index, and frees the documents.
#include <cstdio>
#include <memory>
#include <vector>

struct Document {
  char text[3000];
};
struct Entry {
  char key[48];
};

Document* read_document() { return new Document{"some text"}; }

#ifdef FIXED
// The entries lie in one block, apart from the documents.
struct Index {
  std::vector<Entry> entries;
  void add_entry() { entries.push_back(Entry{"a key"}); }
};
#else
struct Index {
  std::vector<std::unique_ptr<Entry>> entries;
  void add_entry() { entries.emplace_back(new Entry{"a key"}); }
};
#endif

int main() {
  std::vector<std::unique_ptr<Document>> documents;
  Index index;
  for (int number = 0; number < 20000; ++number) {
    documents.emplace_back(read_document());
    index.add_entry();
  }
  documents.clear();
  std::printf("%zu entries\n", index.entries.size());
}
