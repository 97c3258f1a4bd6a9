// The program of the C++ samples in this folder: each form of operator new and delete, and a malloc.

#include <cstdlib>
#include <new>
struct alignas(64) A {
  char x[64];
};
int main() {
  int* a = new int;
  int* b = new int[10];
  A* c = new A;
  A* d = new A[2];
  int* n = new (std::nothrow) int;
  delete a;
  delete[] b;
  delete c;
  delete[] d;
  ::operator delete(n, std::nothrow);
  std::free(std::malloc(3));
}
