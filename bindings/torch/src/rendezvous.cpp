#include "rendezvous.hpp"

#include "errors.hpp"

namespace anyccl::torch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kIds = "anyccl/ids";
// What rank 0 says begins with one of these; why there are no ids, or the ids, follow.
constexpr char kFailed = '-', kReady = '+';

std::string key_of(int rank) {
  return "anyccl/here/" + std::to_string(rank);
}

std::chrono::milliseconds left(Clock::time_point deadline) {
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(rest, std::chrono::milliseconds{1});
}

bool wait_for(c10d::Store& store, const std::string& key, Clock::time_point deadline) {
  try {
    store.wait({key}, left(deadline));
    return true;
  } catch (const std::exception&) {
    return store.check({key});  // throws where the store itself is gone
  }
}

std::string missing(c10d::Store& store, int size) {
  std::string names;
  for (int rank = 1; rank < size; ++rank)
    if (!store.check({key_of(rank)})) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return names;
}

/// Rank 0: waits for all, then tells them the ids, or why there are none.
std::string invite(c10d::Store& store, int size, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (int rank = 1; rank < size; ++rank) {
    if (wait_for(store, key_of(rank), deadline)) continue;
    const std::string text = "anyccl: init_process_group: Timed out after " +
                             std::to_string(timeout.count()) + " ms waiting for rank " +
                             missing(store, size) + " of " + std::to_string(size) + " to join";
    store.set(kIds, kFailed + text);
    throw_backend_error(text);
  }
  std::string answer(1, kReady);
  for (int i = 0; i < 2; ++i) {
    anycclUniqueId id;
    check(anycclGetUniqueId(&id), "init_process_group");
    answer.append(std::begin(id.internal), std::end(id.internal));
  }
  store.set(kIds, answer);
  return answer;
}

std::string be_invited(c10d::Store& store, int rank, std::chrono::milliseconds timeout) {
  // Rank 0 may have waited for as long as we: it gets a moment to say who is missing.
  const auto deadline = Clock::now() + timeout + std::chrono::seconds{1};
  store.set(key_of(rank), std::string(1, kReady));
  if (!wait_for(store, kIds, deadline))
    throw_backend_error("anyccl: init_process_group: Timed out after " +
                        std::to_string(timeout.count()) + " ms waiting for rank 0 to join");
  const std::string answer = store.get_to_str(kIds);
  if (answer.empty() || answer[0] != kReady)
    throw_backend_error(answer.empty() ? answer : answer.substr(1));
  return answer;
}

}  // namespace

Channels meet(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout) {
  const std::string answer =
      rank == 0 ? invite(store, size, timeout) : be_invited(store, rank, timeout);
  TORCH_CHECK(answer.size() == 1 + 2 * sizeof(anycclUniqueId),
              "anyccl: init_process_group: rank 0 has another version");
  anycclUniqueId ids[2];
  std::memcpy(ids, answer.data() + 1, sizeof ids);
  // Both at once; nobody is far now.
  const auto deadline = Clock::now() + timeout;
  Channels channels{std::make_shared<Channel>(ids[0], rank, size),
                    std::make_shared<Channel>(ids[1], rank, size)};
  channels.collectives->ready(deadline);
  channels.messages->ready(deadline);
  return channels;
}

}  // namespace anyccl::torch
