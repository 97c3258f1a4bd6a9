// A program that is built twice, with -O0 and with -O2, once with an allocation more: tests/symbols/difference_test.sh.

#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int count = 2000;

struct Item {
  std::string name;
  std::vector<int> values;
};

std::vector<Item> items;
std::unique_ptr<char[]> buffers[count];

void add_values(Item& item, int i) {
  for (int k = 0; k < i % 7; ++k) item.values.push_back(k);
}

void add_name(Item& item, int i) { item.name = "the rather long name of an item " + std::to_string(i); }

void add_buffer(int i) {
#ifdef WITH_BUFFERS
  buffers[i] = std::make_unique<char[]>(static_cast<unsigned>(100 + i % 5));
#else
  buffers[i].reset();
#endif
}

}  // namespace

int main() {
  for (int i = 0; i < count; ++i) {
    items.emplace_back();
    add_name(items.back(), i);
    add_values(items.back(), i);
    add_buffer(i);
  }
}
