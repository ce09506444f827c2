#include "routing.hpp"

#include <utility>

#include "group.hpp"

namespace anyccl::python {
namespace {

/// Integers of any type as int32 of NumPy, in C order, clipped to -2..2^31 - 1. Raises
/// InvalidArgument for other types.
nb::object as_int32(nb::handle experts) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(experts);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool is_empty = nb::cast<std::int64_t>(array.attr("size")) == 0;  // [] is of floats
  if (kind != "i" && kind != "u" && !is_empty)
    raise_invalid("experts is of " + nb::cast<std::string>(array.attr("dtype").attr("name")) +
                  ", but needs integers");
  return numpy.attr("ascontiguousarray")(numpy.attr("clip")(array, -2, 0x7fffffff), "int32");
}

}  // namespace

/// One exchange at a time, as both use the memory of the routing.
class Routing::Turn {
 public:
  /// Raises InvalidUsage while another one lives.
  explicit Turn(Routing& routing) : routing_(routing) {
    if (routing.busy_) raise(anycclInvalidUsage, "another thread is inside a call on this routing");
    routing.busy_ = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { routing_.busy_ = false; }

 private:
  Routing& routing_;
};

std::shared_ptr<Routing> Routing::make(Communicator& c, nb::handle experts, int nexperts,
                                       std::optional<std::int64_t> capacity, bool padded) {
  need_no_group("route");
  if (capacity && *capacity < 1)
    raise_invalid("capacity is " + std::to_string(*capacity) + ": it is 1 or more, or None");
  const Array chosen = Array::read(as_int32(experts), "experts");
  if (chosen.shape.empty() || chosen.shape.size() > 2)
    raise_invalid("experts has the shape " + to_string(chosen.shape) +
                  ", but needs (tokens,) or (tokens, choices)");
  auto routing = std::make_shared<Routing>(c.shared_from_this());
  routing->tokens_ = chosen.shape[0];
  if (chosen.shape.size() == 2) routing->choices_ = chosen.shape[1];
  const Communicator::Call turn(c);
  raise_unless_ok(unlocked([&] {
    return anycclRoutingCreate(
        &routing->handle_, static_cast<std::size_t>(routing->tokens_),
        static_cast<int>(routing->choices_), reinterpret_cast<const int*>(chosen.data), nexperts,
        static_cast<std::size_t>(capacity.value_or(0)), padded ? 1 : 0, turn.handle);
  }));
  routing->counts_.resize(static_cast<std::size_t>(nexperts / c.size()));
  raise_unless_ok(outcome_of(anycclRoutingRows(routing->handle_, &routing->rows_,
                                               routing->counts_.data(), &routing->dropped_)));
  return routing;
}

void Routing::need_rows(const Array& x, std::size_t rows, const char* of) const {
  if (!x.shape.empty() && static_cast<std::size_t>(x.shape[0]) == rows) return;
  raise_invalid("x has the shape " + to_string(x.shape) + ", but needs one row for each of " +
                std::to_string(rows) + " " + of);
}

/// The library packs what it sends before the turn of the call comes.
void Routing::read_now(const Array& array) const {
  comm_->issued().finish_writers(array);
  if (array.origin != nullptr) array.copy_again();
}

nb::object Routing::exchange(Array in, std::int64_t rows, nb::handle out, const Array* weights) {
  const bool back = weights != nullptr;
  need_no_group(back ? "combine" : "dispatch");
  const std::size_t width = count_of(without_first(in.shape));
  Result result = Result::make(out, in, with_first(rows, in.shape, 1));
  const auto dtype = static_cast<anycclDataType_t>(in.dtype);
  std::byte* const to = result.array().data;
  const Turn mine(*this);
  const Communicator::Call turn(*comm_);
  read_now(in);
  if (back && weights->data != nullptr) read_now(*weights);
  raise_unless_ok(unlocked([&] {
    return back ? anycclCombine(in.data, weights->data, to, width, dtype, handle_, turn.handle)
                : anycclDispatch(in.data, to, width, dtype, handle_, turn.handle);
  }));
  return result.take();
}

nb::object Routing::dispatch(nb::handle x, nb::handle out) {
  Array in = Array::input(x, "x");
  need_rows(in, static_cast<std::size_t>(tokens_), "tokens");
  return exchange(std::move(in), static_cast<std::int64_t>(rows_), out, nullptr);
}

nb::object Routing::combine(nb::handle x, nb::handle weights, nb::handle out) {
  Array in = Array::input(x, "x");
  need_rows(in, rows_, "rows of this rank's experts");
  Array factors;
  if (!weights.is_none()) {
    factors = Array::input(weights, "weights");
    if (factors.dtype != in.dtype)
      raise_invalid("weights is of " + std::string(info(factors.dtype).name) + ", but x of " +
                    std::string(info(in.dtype).name));
    const Shape wanted = {tokens_, choices_};
    if (factors.shape != wanted && !(choices_ == 1 && factors.shape == Shape{tokens_}))
      raise_invalid("weights has the shape " + to_string(factors.shape) + ", but needs " +
                    to_string(wanted));
  }
  return exchange(std::move(in), tokens_, out, &factors);
}

}  // namespace anyccl::python
