#pragma once
// Shared by the examples: they end at the first error, and run ranks as threads.

#include <anyccl/anyccl.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace example {

/// Ends the program with `message`, at once: other ranks may be threads of it.
[[noreturn]] inline void fail(std::string_view message) {
  std::fflush(stdout);
  std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  std::_Exit(1);
}

/// Goes on only if nothing went wrong. A library would pass the Status to its caller instead.
inline void must(const anyccl::Status& status) {
  if (!status.ok()) fail(status.message());
}
/// The same for a value ...
template <typename T>
T must(anyccl::Result<T> result) {
  must(result.status());
  return *std::move(result);
}
/// ... for calls of the C interface ...
inline void must(anycclResult_t result, anycclComm_t comm) {
  if (result != anycclSuccess) fail(anycclGetLastError(comm));
}
/// ... and for the checks of an example.
inline void expect(bool holds, std::string_view what) {
  if (!holds) fail("WRONG: " + std::string(what));
}

/// Calls body(communicator) for each rank of a communicator, in a thread of its own.
template <typename Body>
void as_threads(int ranks, const Body& body) {
  auto comms = must(anyccl::Communicator::init_all(ranks));
  std::vector<std::jthread> threads;
  for (anyccl::Communicator& comm : comms) {
    threads.emplace_back([&] {
      body(comm);
      must(comm.destroy());
    });
  }
}

}  // namespace example
