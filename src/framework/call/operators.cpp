#include "framework/call/operators.hpp"

#include <algorithm>
#include <cstring>

#include "base/callback.hpp"
#include "base/error.hpp"
#include "platform/reduce/copy.hpp"

namespace anyccl {
namespace {

// A handle is a number and, above it, the turn, which begins again after this many.
constexpr std::uint32_t kNumberBits = 8, kTurns = 1U << 22;

constexpr std::size_t kPortion = 4096;  // bytes at a time, which stay in the cache

/// A portion of a call of the user's function.
struct Portion {
  const Operator& op;
  DType dtype;
  const void* const* sources;
  std::size_t at, bytes, elements;

  /// to = the aligned tree over the sources from `low` to `high`; docs/adr/0056. What is on the
  /// right of an operand needs memory of its own, as deep as the tree is.
  void fold(std::size_t low, std::size_t high, std::byte* to) const {
    copy_bytes(to, source(low), bytes);
    // The nodes that begin at `low`, each twice as large as what is there already.
    for (std::size_t size = 1; low + size < high; size *= 2) {
      const std::size_t first = low + size, last = std::min(first + size, high);
      if (last - first == 1)
        join(source(first), to);
      else
        fold_and_join(first, last, to);
    }
  }

 private:
  const std::byte* source(std::size_t k) const {
    return static_cast<const std::byte*>(sources[k]) + at;
  }
  void join(const std::byte* right, std::byte* to) const {
    op.function(right, to, elements, static_cast<anycclDataType_t>(dtype), op.data);
  }
  [[gnu::noinline]] void fold_and_join(std::size_t low, std::size_t high, std::byte* to) const {
    alignas(64) std::byte right[kPortion];
    fold(low, high, right);
    join(right, to);
  }
};

}  // namespace

Result<ReduceOp> Operators::add(const Operator& op) {
  const std::lock_guard lock(mutex_);
  auto place = std::find_if(all_.begin(), all_.end(), [](const Place& p) { return p.is_free(); });
  if (place == all_.end()) {
    if (all_.size() == kMost)
      return error(Code::unsupported,
                   "a communicator has at most {} operators at a time; destroy some", kMost);
    place = all_.insert(place, Place());
  }
  const auto number = kFirst + static_cast<std::uint32_t>(place - all_.begin());
  const std::uint32_t turn = place->turn % kTurns + 1;
  const auto handle = static_cast<ReduceOp>(turn << kNumberBits | number);
  put(handle, op);
  return handle;
}

void Operators::add_as(ReduceOp handle, const Operator& op) {
  const std::lock_guard lock(mutex_);
  put(handle, op);
}

void Operators::copy(const Operators& from) {
  const std::scoped_lock lock(mutex_, from.mutex_);
  all_ = from.all_;
  for (Place& place : all_)  // what holds them there holds nothing here
    if (place.op != nullptr)
      place.op = std::make_shared<const std::shared_ptr<const Operator>>(*place.op);
}

void Operators::put(ReduceOp handle, const Operator& op) {
  const auto value = static_cast<std::uint32_t>(handle);
  const std::size_t i = value % (1U << kNumberBits) - kFirst;
  if (all_.size() <= i) all_.resize(i + 1);
  all_[i] = {.op = std::make_shared<const std::shared_ptr<const Operator>>(
                 std::make_shared<const Operator>(op)),
             .turn = value >> kNumberBits};
}

Status Operators::remove(ReduceOp handle) {
  const std::lock_guard lock(mutex_);
  const Place* const place = place_of(handle);
  if (place == nullptr)
    return error(Code::invalid_argument,
                 "op {:#x} was not created with this communicator, or is gone",
                 static_cast<std::uint32_t>(handle));
  all_[static_cast<std::size_t>(place - all_.data())].removed = true;
  return {};
}

ReduceOp Operators::number_of(ReduceOp handle) const {
  const std::lock_guard lock(mutex_);
  if (place_of(handle) == nullptr) return kNone;
  return static_cast<ReduceOp>(static_cast<std::uint32_t>(handle) % (1U << kNumberBits));
}

/// Returns null if there is none with that handle.
const Operators::Place* Operators::place_of(ReduceOp handle) const {
  const auto value = static_cast<std::uint32_t>(handle);
  const std::size_t i = std::size_t{value % (1U << kNumberBits)} - kFirst;
  if (i >= all_.size()) return nullptr;
  const Place& place = all_[i];
  const bool lives = place.op != nullptr && !place.removed;
  return lives && place.turn == value >> kNumberBits ? &place : nullptr;
}

HeldOperator Operators::hold(ReduceOp number) const {
  const std::size_t i = static_cast<std::size_t>(number) - kFirst;
  const std::lock_guard lock(mutex_);
  return i < all_.size() ? all_[i].op : nullptr;
}

std::shared_ptr<const Operator> Operators::find(ReduceOp number) const {
  if (!is_created(number)) return nullptr;
  const HeldOperator held = hold(number);
  return held == nullptr ? nullptr : *held;
}

void multiply(std::byte* to, const std::byte* from, std::size_t count, std::size_t element,
              const void* factor, ReduceFn times) {
  alignas(64) std::byte factors[kPortion];
  const std::size_t at_a_time = kPortion / element;
  for (std::size_t i = 0; i < std::min(count, at_a_time); ++i)
    std::memcpy(factors + i * element, factor, element);
  for (std::size_t i = 0; i < count; i += at_a_time) {
    const void* sources[] = {from + i * element, factors};
    times(to + i * element, nullptr, sources, 2, std::min(at_a_time, count - i));
  }
}

void apply(const Operator& op, DType dtype, std::size_t element, void* dst, void* second,
           const void* const* sources, std::size_t sources_count, std::size_t count) {
  const InCallback marked(Callback::reduction);
  alignas(64) std::byte result[kPortion];  // dst may still be needed as a source
  const std::size_t at_a_time = kPortion / element;
  for (std::size_t i = 0; i < count; i += at_a_time) {
    const std::size_t elements = std::min(at_a_time, count - i), at = i * element;
    Portion{op, dtype, sources, at, elements * element, elements}.fold(0, sources_count, result);
    for (void* target : {dst, second})
      if (target != nullptr)
        std::memcpy(static_cast<std::byte*>(target) + at, result, elements * element);
  }
}

}  // namespace anyccl
