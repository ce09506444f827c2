// Measures groups of anyccl, by the public interface only, so that it can be built with any version.
//   anyccl run -n RANKS groups [COUNT [RANKS FOLDER]]

#include "anyccl/anyccl.hpp"
#include "groups.hpp"

namespace {

void must(const anyccl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}

class Group {
 public:
  Group() : Group(anyccl::Communicator::from_env()) {}

  int rank() const { return anyccl::index(comm_.rank()); }
  void use() {
    float x = 1;
    reduce(std::span(&x, 1), anyccl::ReduceOp::sum);
  }
  void maximum(std::vector<double>& values) {
    if (!values.empty()) reduce(std::span(values), anyccl::ReduceOp::max);
  }
  Group next() { return Group(comm_.split(0, rank())); }

 private:
  explicit Group(anyccl::Result<anyccl::Communicator> made) : comm_(taken(made)) {}
  static anyccl::Communicator taken(anyccl::Result<anyccl::Communicator>& made) {
    must(made.status());
    return std::move(*made);
  }
  template <typename T>
  void reduce(std::span<T> values, anyccl::ReduceOp op) {
    must(anyccl::wait(comm_.all_reduce(anyccl::view(values), anyccl::view(values), op)));
  }

  anyccl::Communicator comm_;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::measure<Group>(argc, argv);
}
