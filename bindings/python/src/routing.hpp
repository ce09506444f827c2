#pragma once
// Mixture of experts.

#include <memory>
#include <optional>

#include "shapes.hpp"

namespace anyccl::python {

/// Which tokens go to which experts. It keeps its communicator alive.
class Routing {
 public:
  /// Collective.
  static std::shared_ptr<Routing> make(Communicator& c, nb::handle experts, int nexperts,
                                       std::optional<std::int64_t> capacity, bool padded);

  explicit Routing(CommunicatorPtr comm) : comm_(std::move(comm)) {}
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;
  ~Routing() { static_cast<void>(anycclRoutingDestroy(handle_)); }

  std::int64_t tokens() const { return tokens_; }
  std::int64_t choices() const { return choices_; }
  std::size_t rows() const { return rows_; }
  const std::vector<std::size_t>& counts() const { return counts_; }
  std::size_t dropped() const { return dropped_; }

  nb::object dispatch(nb::handle x, nb::handle out);
  nb::object combine(nb::handle x, nb::handle weights, nb::handle out);

 private:
  class Turn;

  void need_rows(const Array& x, std::size_t rows, const char* of) const;
  void read_now(const Array& array) const;
  /// Combines if `weights` is not null, unweighted where its data is null; else dispatches.
  nb::object exchange(Array in, std::int64_t rows, nb::handle out, const Array* weights);

  CommunicatorPtr comm_;
  anycclRouting_t handle_ = nullptr;
  std::int64_t tokens_ = 0, choices_ = 1;
  std::size_t rows_ = 0, dropped_ = 0;
  std::vector<std::size_t> counts_;  // of each expert of this rank
  bool busy_ = false;
};

}  // namespace anyccl::python
