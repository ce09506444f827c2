#include "objects.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>

#include "errors.hpp"
#include "payload_exchange.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

using bindings::PayloadExchange;

/// An exchange and what it uses, also after the wait for it.
class ObjectExchange : public std::enable_shared_from_this<ObjectExchange> {
 public:
  ObjectExchange(Backend& backend, std::string name, anycclCollective_t what, int root,
                 std::vector<at::Tensor> payloads, bool failed)
      : name_(std::move(name)),
        comm_(backend.core_->group.comm),
        executor_(backend.core_->executor),
        payloads_(std::move(payloads)),
        rounds_(
            {what, backend.getRank(), backend.getSize(), root, limit_of(backend.options_->timeout)},
            views(), failed) {
    ++backend.sequence_;
  }

  /// Until it is over, without the interpreter. Throws what signals raise; then another thread goes
  /// on.
  void wait();
  /// Null if it has not failed.
  std::exception_ptr error() const;
  pybind11::list results();

 private:
  std::vector<std::string_view> views() const;
  bool go_on(std::chrono::milliseconds time);
  void finish_in_background();

  const std::string name_;
  const std::shared_ptr<SharedComm> comm_;
  const std::shared_ptr<Executor> executor_;
  const std::vector<at::Tensor> payloads_;
  PayloadExchange rounds_;
  std::exception_ptr closed_;  // what calls of a group say that has ended
};

std::vector<std::string_view> ObjectExchange::views() const {
  std::vector<std::string_view> all;
  for (const at::Tensor& payload : payloads_)
    all.emplace_back(static_cast<const char*>(payload.data_ptr()), payload.nbytes());
  return all;
}

bool ObjectExchange::go_on(std::chrono::milliseconds time) {
  try {
    bool is_over = false;
    comm_->with(name_, [&](anycclComm_t comm) {
      try {
        is_over = rounds_.go_on(comm, limit_of(time));
      } catch (const std::bad_alloc&) {
        rounds_.give_up(comm, "there is no memory for the objects of other ranks");
        is_over = true;
      }
    });
    return is_over;
  } catch (const c10::Error&) {
    closed_ = std::current_exception();
  }
  return rounds_.go_on(nullptr, limit_of(time));
}

void ObjectExchange::wait() {
  for (;;) {
    const GilReleased released;
    if (go_on(kSignalTime)) return;
    try {
      check_signals();
    } catch (...) {
      finish_in_background();
      throw;
    }
  }
}

void ObjectExchange::finish_in_background() {
  const auto tell = [this](const auto& about) {
    try {
      comm_->with(name_, about);
    } catch (const c10::Error&) {
      // The group has ended, as go_on() finds.
    }
  };
  tell([this](anycclComm_t comm) { rounds_.hand_over(comm); });
  executor_->expect();  // the end of the group waits for it
  executor_->submit_expected([self = shared_from_this(), tell] {
    tell([&](anycclComm_t comm) { self->rounds_.take(comm); });
    while (!self->go_on(kSignalTime)) {
    }
  });
}

std::exception_ptr ObjectExchange::error() const {
  if (closed_ != nullptr) return closed_;
  if (rounds_.result() != anycclSuccess) return failure(rounds_.result(), name_, rounds_.message());
  for (std::size_t i = 0; i < rounds_.arrived(); ++i)
    if (rounds_.is_error(i))
      return failure(anycclInvalidUsage, name_,
                     name_ + ": rank " + std::to_string(rounds_.source(i)) +
                         " cannot send its object: " + rounds_.text(i));
  return nullptr;
}

/// Large ones stay where they are.
pybind11::list ObjectExchange::results() {
  constexpr std::size_t kLarge = 65536;
  pybind11::list all;
  for (std::size_t i = 0; i < rounds_.arrived(); ++i) {
    const std::string_view payload = rounds_.payload(i);
    if (payload.size() < kLarge)
      all.append(pybind11::bytes(payload.data(), payload.size()));
    else
      all.append(at::from_blob(
          const_cast<char*>(payload.data()), {static_cast<std::int64_t>(payload.size())},
          [self = shared_from_this()](void*) {}, at::kByte));
  }
  return all;
}

namespace {

/// "TypeError: cannot pickle this".
std::string text_of(const pybind11::error_already_set& error) {
  std::string text = pybind11::str(error.type().attr("__name__"));
  try {
    text += ": " + std::string(pybind11::str(error.value()));
  } catch (const pybind11::error_already_set&) {
    // It has no words.
  }
  return text;
}

at::Tensor bytes_of(const std::string& text) {
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

}  // namespace

pybind11::list exchange_objects(Backend& backend, const std::string& name, anycclCollective_t what,
                                const pybind11::function& pickle, int root) {
  RECORD_USER_SCOPE("anyccl:" + name);
  const bool is_root = backend.getRank() == root;
  std::vector<at::Tensor> payloads;
  std::exception_ptr raised;
  try {
    for (const pybind11::handle one : pybind11::list(pickle()))
      payloads.push_back(pybind11::cast<at::Tensor>(one));
  } catch (const pybind11::error_already_set& error) {  // whatever an object raises, and interrupts
    const bool is_for_all = what == anycclCollScatter && is_root;
    payloads.assign(is_for_all ? static_cast<std::size_t>(backend.getSize()) : 1,
                    bytes_of(text_of(error)));
    raised = std::current_exception();
  }
  const auto exchange = std::make_shared<ObjectExchange>(backend, name, what, root,
                                                         std::move(payloads), raised != nullptr);
  exchange->wait();
  if (raised == nullptr) raised = exchange->error();
  if (raised != nullptr) std::rethrow_exception(raised);
  if ((what == anycclCollBroadcast && is_root) || (what == anycclCollGather && !is_root))
    return pybind11::list();
  return exchange->results();
}

}  // namespace anyccl::torch
