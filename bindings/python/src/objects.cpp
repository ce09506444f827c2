// Objects between all ranks. When a signal ends the wait, a thread of its own goes on with the
// rounds, as other ranks count on this one.

#include "objects.hpp"

#include <pthread.h>

#include <csignal>
#include <memory>
#include <thread>

#include "payload_exchange.hpp"

namespace anyccl::python {
namespace {

using bindings::PayloadExchange;

/// An exchange and what it uses.
struct Exchange {
  Exchange(Communicator& c, anycclComm_t handle_, const PayloadExchange::Settings& settings,
           std::vector<nb::bytes> pickled, bool failed)
      : comm(c.shared_from_this()),
        handle(handle_),
        payloads(std::move(pickled)),
        rounds(settings, views(), failed) {}
  bool go_on(unsigned ms) try { return rounds.go_on(handle, ms); } catch (const std::bad_alloc&) {
    rounds.give_up(handle, "there is no memory for the objects of other ranks");
    return true;
  }
  nb::list results() const;

  const CommunicatorPtr comm;
  const anycclComm_t handle;
  const std::vector<nb::bytes> payloads;
  PayloadExchange rounds;

 private:
  std::vector<std::string_view> views() const {
    std::vector<std::string_view> all;
    for (const nb::bytes& payload : payloads) all.emplace_back(payload.c_str(), payload.size());
    return all;
  }
};

/// Returns the pairs of exchange_payloads(), after an exchange that has not failed.
nb::list Exchange::results() const {
  nb::list all;
  for (std::size_t i = 0; i < rounds.arrived(); ++i) {
    const std::string_view payload = rounds.payload(i);
    all.append(nb::make_tuple(rounds.is_error(i), nb::bytes(payload.data(), payload.size())));
  }
  return all;
}

/// Those that a signal has interrupted, until they are over; with the interpreter lock, as they
/// have objects.
std::vector<std::shared_ptr<Exchange>>& all_interrupted() {
  static auto* const all = new std::vector<std::shared_ptr<Exchange>>;  // to the process's end
  return *all;
}

/// Hands it over to a new thread. Gives it up, and so revokes the communicator, if there is none.
void finish_in_background(const std::shared_ptr<Exchange>& exchange) {
  exchange->rounds.hand_over(exchange->handle);
  all_interrupted().push_back(exchange);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for threads of the program
  try {
    std::thread([alone = exchange.get()] {
      constexpr unsigned kLong = 1000;
      alone->rounds.take(alone->handle);
      while (!alone->go_on(kLong)) {
      }
    }).detach();
  } catch (const std::system_error&) {
    exchange->rounds.give_up(exchange->handle,
                             "there is no thread for the rest of an exchange of objects");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// "TypeError: cannot pickle this".
std::string text_of(const nb::python_error& error) {
  std::string text = nb::cast<std::string>(error.type().attr("__name__"));
  const nb::object words = nb::steal(PyObject_Str(error.value().ptr()));
  const char* const utf8 = words.is_valid() ? PyUnicode_AsUTF8(words.ptr()) : nullptr;
  PyErr_Clear();
  return utf8 == nullptr ? text : text + ": " + utf8;
}

}  // namespace

nb::list exchange_payloads(Communicator& c, anycclCollective_t what, const nb::callable& pickle,
                           int root) {
  std::vector<nb::bytes> payloads;
  std::optional<nb::python_error> error;
  try {
    for (const nb::handle one : nb::list(pickle())) payloads.push_back(nb::cast<nb::bytes>(one));
  } catch (nb::python_error& e) {  // whatever the object's own __reduce__ raises, and interrupts
    const std::string text = text_of(e);
    const bool is_for_all = what == anycclCollScatter && c.rank() == root;
    payloads.assign(is_for_all ? static_cast<std::size_t>(c.size()) : 1,
                    nb::bytes(text.data(), text.size()));
    error.emplace(std::move(e));
  }
  std::erase_if(all_interrupted(), [](const auto& one) { return one->rounds.is_over(); });
  const Communicator::Call turn(c);
  const PayloadExchange::Settings settings{what, c.rank(), c.size(), root,
                                           c.timeout() ? milliseconds(c.timeout()) : 0};
  const auto exchange =
      std::make_shared<Exchange>(c, turn.handle, settings, std::move(payloads), error.has_value());
  try {
    wait_in_slices(std::nullopt, [&](unsigned ms) { return exchange->go_on(ms); });
  } catch (...) {
    finish_in_background(exchange);
    throw;
  }
  if (error) throw std::move(*error);
  raise_unless_ok({exchange->rounds.result(), exchange->rounds.message()});
  return exchange->results();
}

void wait_for_interrupted(const Communicator& c) {
  const std::vector<std::shared_ptr<Exchange>> all = all_interrupted();
  for (const auto& one : all)
    if (one->comm.get() == &c)
      wait_in_slices(std::nullopt, [&](unsigned) {
        if (!one->rounds.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return one->rounds.is_over();
      });
}

}  // namespace anyccl::python
