#include "join/rendezvous.hpp"

#include <unistd.h>

#include <functional>
#include <random>
#include <thread>

#include "errors.hpp"
#include "join/meaning.hpp"
#include "waiting.hpp"

namespace anyccl::torch {
namespace {

// A new init_process_group gives groups the same names on the same store: keys of an earlier round
// may still be there. So each rank makes up a name, rank 0 answers to that name, and the reader of
// a key deletes it. A rank that died while it joined leaves its name, which rank 0 of the next
// round answers instead of the one in its place: that one says its name again, and rank 0 looks for
// names until all have joined. A name that another process has replaced is noticed by its owner.

// The first character of rank 0's answer, before the reason of a failure or an Invitation; and of
// a name that two processes have said, before what to say of it.
constexpr char kFailed = '-', kReady = '+', kTwice = '!';
constexpr const char* kSaidTwice = "here/twice";  // where rank 0 looks while it waits
constexpr const char* kOtherBackend =
    "; a rank whose backend is another one, such as Gloo itself, does not come";
constexpr std::chrono::milliseconds kLate{2000}, kMostTime = std::chrono::hours{24 * 365 * 100};
/// The answer of rank 0.
struct Invitation {
  anycclUniqueId id;
  char round[16];
};

std::string key_of(int rank) {
  return "here/" + std::to_string(rank);
}

std::string answer_to(int rank, const std::string& name) {
  return "id/" + std::to_string(rank) + "/" + name;
}

std::string this_process() {
  char host[256] = "?";
  static_cast<void>(::gethostname(host, sizeof host - 1));
  return "host " + std::string(host) + ", pid " + std::to_string(::getpid());
}

/// 16 characters that were never used before.
std::string new_name() {
  std::random_device random;
  std::string name;
  for (std::uint64_t bits = std::uint64_t{random()} << 32 | random(); name.size() < 16; bits >>= 4)
    name += "0123456789abcdef"[bits & 15];
  return name;
}

/// The name that this process says for its rank, with where it runs.
class Claim {
 public:
  Claim(c10d::Store& store, int rank)
      : store_(store), rank_(rank), name_(new_name() + " " + this_process()) {}
  void say() const { store_.set(key_of(rank_), name_); }
  std::string answer() const { return answer_to(rank_, name_); }
  /// Throws if another process has said its name for this rank since, and tells that one.
  void check() const {
    if (!has_key(store_, key_of(rank_))) return;
    const std::string other = store_.get_to_str(key_of(rank_));
    if (other == name_) return;
    if (!other.empty() && other[0] == kTwice) throw_backend_error(other.substr(1));
    const std::string text = "anyccl: init_process_group: rank " + std::to_string(rank_) +
                             " joined twice: from " + process_of(name_) + " and from " +
                             process_of(other);
    store_.set(key_of(rank_), kTwice + text);  // where rank 0 has not come yet
    store_.set(kSaidTwice, kFailed + text);
    store_.set(answer_to(rank_, other), kFailed + text);
    throw_backend_error(text);
  }

 private:
  static std::string process_of(const std::string& name) {
    const std::size_t space = name.find(' ');
    return space == std::string::npos ? "another process" : name.substr(space + 1);
  }
  c10d::Store& store_;
  const int rank_;
  const std::string name_;
};

/// Returns a function that calls `between`, but at most twice a second.
std::function<void()> twice_a_second(std::function<void()> between) {
  return [between = std::move(between), next = Clock::now() + kSignalTime]() mutable {
    if (Clock::now() < next) return;
    between();
    next = Clock::now() + kSignalTime;
  };
}

std::string missing_ranks(c10d::Store& store, int size) {
  std::string names;
  for (int rank = 1; rank < size; ++rank)
    if (!has_key(store, key_of(rank))) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return names;
}

void answer(c10d::Store& store, int rank, const std::string& text) {
  store.set(answer_to(rank, store.get_to_str(key_of(rank))), text);
}

/// What a rank says to the others when it has failed to join.
std::string cannot_join(int rank, const std::string& why) {
  constexpr std::string_view kOurs = "anyccl: ";
  return "init_process_group: rank " + std::to_string(rank) +
         " cannot join: " + why.substr(why.starts_with(kOurs) ? kOurs.size() : 0);
}

[[noreturn]] void throw_trouble(const std::string& text) {
  std::rethrow_exception(failure(anycclSystemError, "init_process_group", text));
}

/// Where a rank of a round says that it cannot go on once all have come. Others look there while
/// they connect, as no connection may tell them.
class Trouble {
 public:
  Trouble(c10d::Store& store, int rank, const std::string& round)
      : store_(store), rank_(rank), key_("trouble/" + round) {}
  /// False: it is another rank's trouble, or a time limit, which each rank has for itself.
  bool tell(const std::string& why) const {
    if (why.find("Timed out") != std::string::npos || why.find("cannot join") != std::string::npos)
      return false;
    try {
      if (!has_key(store_, key_)) store_.set(key_, cannot_join(rank_, why));
    } catch (const std::exception&) {
      // The store is gone.
    }
    return true;
  }
  void throw_if_told() const {
    if (has_key(store_, key_)) throw_trouble(store_.get_to_str(key_));
  }
  /// After a failure that another rank's may have caused, which has told of it or is about to.
  void throw_if_told_soon() const {
    bool told = false;
    try {
      told = wait_for(store_, key_, deadline_after(kSignalTime), nullptr);
    } catch (const c10::DistNetworkError&) {
      // The store is gone.
    }
    if (told) throw_if_told();
  }

 private:
  c10d::Store& store_;
  const int rank_;
  const std::string key_;
};

/// What the store gave, and what deletes it there: every access costs a round trip, so that is done
/// when the ranks are on their way.
struct Answer {
  std::string text;
  std::function<void()> forget;
  std::function<void()> look_again;  ///< Until all have joined; may be empty.
};

/// Rank 0: answers names that are there, such as those that were said since it has answered.
void answer_late(c10d::Store& store, int size, const std::string& text) {
  for (int rank = 1; rank < size; ++rank) {
    if (!has_key(store, key_of(rank))) continue;
    answer(store, rank, text);
    delete_key(store, key_of(rank));
  }
}

/// Rank 0: tells those that wait that there will be no group.
void refuse_all(c10d::Store& store, int size, const std::string& text) {
  answer_late(store, size, kFailed + text);
  delete_key(store, key_of(0));
  delete_key(store, kSaidTwice);
}

/// Rank 0: waits for all.
void wait_for_all(c10d::Store& store, int size, std::chrono::milliseconds timeout,
                  const Claim& claim, Meaning& meaning) {
  const auto deadline = deadline_after(timeout), late = std::min(deadline, deadline_after(kLate));
  int awaited = 1;
  const auto look = twice_a_second([&] {
    meaning.check_members(awaited);
    for (const std::string& key : {claim.answer(), std::string(kSaidTwice)})
      if (has_key(store, key)) throw_backend_error(store.get_to_str(key).substr(1));
    claim.check();
  });
  for (int rank = 1; rank < size; awaited = ++rank) {
    if (!wait_for(store, key_of(rank), late, look)) {
      meaning.write_members();
      if (!wait_for(store, key_of(rank), deadline, look))
        throw_backend_error("anyccl: init_process_group: Timed out after " +
                            std::to_string(timeout.count()) + " ms waiting for rank " +
                            missing_ranks(store, size) + " of " + std::to_string(size) +
                            " to join" + meaning.others() + kOtherBackend);
    }
    const std::string name = store.get_to_str(key_of(rank));
    if (name.empty() || name[0] != kTwice) continue;  // perhaps of an earlier round: it comes again
    delete_key(store, key_of(rank));
    if (!wait_for(store, key_of(rank), std::min(deadline, deadline_after(2 * kLate)), look))
      throw_backend_error(name.substr(1));
  }
}

/// Rank 0: waits for all, then tells them the id, or why there is none.
Answer invite(c10d::Store& store, int size, std::chrono::milliseconds timeout, Meaning& meaning) {
  const Claim claim(store, 0);
  delete_key(store, kSaidTwice);  // of an earlier round
  claim.say();
  try {
    wait_for_all(store, size, timeout, claim, meaning);
  } catch (const c10::Error& error) {
    refuse_all(store, size, error.what_without_backtrace());
    throw;
  }
  Invitation invitation;
  try {
    check(anycclGetUniqueId(&invitation.id), "init_process_group");
  } catch (const c10::Error& error) {
    const std::string text = cannot_join(0, error.what_without_backtrace());
    for (int rank = 1; rank < size; ++rank) answer(store, rank, kFailed + ("anyccl: " + text));
    throw_trouble(text);
  }
  new_name().copy(invitation.round, sizeof invitation.round);
  std::string text(1 + sizeof invitation, kReady);
  std::memcpy(text.data() + 1, &invitation, sizeof invitation);
  for (int rank = 1; rank < size; ++rank) answer(store, rank, text);
  return {text,
          [&store, size] {
            for (int rank = 0; rank < size; ++rank) delete_key(store, key_of(rank));
          },
          [&store, size, text] { answer_late(store, size, text); }};
}

/// Whether rank 0 has answered before `deadline`. Says the name again every two seconds: it may
/// have been deleted with that of a rank that died.
bool wait_for_answer(c10d::Store& store, const Claim& claim, Clock::time_point deadline,
                     Meaning& meaning) {
  const auto look = twice_a_second([&] {
    meaning.check_members(0);
    claim.check();
  });
  for (;;) {
    claim.say();
    const auto turn = std::min(deadline, Clock::now() + kLate);
    if (wait_for(store, claim.answer(), turn, look)) return true;
    claim.check();
    meaning.write_members();
    if (turn == deadline) return false;
  }
}

Answer be_invited(c10d::Store& store, int rank, std::chrono::milliseconds timeout,
                  Meaning& meaning) {
  // Rank 0 may have waited as long as this rank: it gets a moment to name the missing ranks.
  const auto deadline = deadline_after(std::min(timeout, kMostTime) + std::chrono::seconds{1});
  const Claim claim(store, rank);
  const std::string key = claim.answer();
  if (!wait_for_answer(store, claim, deadline, meaning)) {
    delete_key(store, key_of(rank));
    throw_backend_error("anyccl: init_process_group: Timed out after " +
                        std::to_string(timeout.count()) + " ms waiting for rank 0 to join" +
                        meaning.others() + kOtherBackend);
  }
  const std::string text = store.get_to_str(key);
  if (text.empty() || text[0] != kReady) {
    delete_key(store, key);
    throw_backend_error(text.empty() ? text : text.substr(1));
  }
  return {text, [&store, key] { delete_key(store, key); }, nullptr};
}

}  // namespace

bool has_key(c10d::Store& store, const std::string& key) {
  try {
    return store.check({key});
  } catch (const c10::DistNetworkError&) {
    throw;  // the store is gone
  } catch (const std::exception&) {
    // A store of the program that has no check().
  }
  try {
    store.wait({key}, std::chrono::milliseconds{1});
    return true;
  } catch (const c10::DistNetworkError&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

bool wait_for(c10d::Store& store, const std::string& key, Clock::time_point deadline,
              const std::function<void()>& between) {
  constexpr std::chrono::microseconds kFirst{100}, kMost{20'000};
  constexpr std::chrono::milliseconds kBetween{100};
  auto next = Clock::now() + kBetween;
  for (std::chrono::microseconds pause = kFirst;; pause = std::min(pause * 5 / 4, kMost)) {
    if (has_key(store, key)) return true;
    const auto now = Clock::now();
    if (now >= deadline) return false;
    if (now >= next) {
      check_signals();
      if (between) between();
      next = now + kBetween;
    }
    std::this_thread::sleep_for(std::min(
        pause, std::chrono::duration_cast<std::chrono::microseconds>(deadline - now) + kFirst));
  }
}

void delete_key(c10d::Store& store, const std::string& key) {
  try {
    store.deleteKey(key);
  } catch (const std::exception&) {
    // A store that cannot delete: a group of this name can then be made only once on it.
  }
}

JoinedGroup meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 std::chrono::milliseconds timeout, const Numbers& numbers,
                 const std::vector<std::uint64_t>& members) {
  Meaning meaning(*store, rank, size, members);
  const auto here = c10::make_intrusive<c10d::PrefixStore>(meaning.place(), store);
  const Answer answer =
      rank == 0 ? invite(*here, size, timeout, meaning) : be_invited(*here, rank, timeout, meaning);
  Invitation invitation;
  if (answer.text.size() != 1 + sizeof invitation)
    throw_backend_error("anyccl: init_process_group: rank 0 has another version");
  std::memcpy(&invitation, answer.text.data() + 1, sizeof invitation);
  // All ranks are here now.
  meaning.take_back();
  const std::string round(invitation.round, sizeof invitation.round);
  const Trouble trouble(*here, rank, round);
  const auto deadline = deadline_after(timeout);
  try {
    auto comm = std::make_shared<SharedComm>(invitation.id, rank, size, numbers);
    answer.forget();
    comm->wait_until_ready(deadline, "init_process_group", [&] {
      if (answer.look_again) answer.look_again();
      trouble.throw_if_told();
    });
    return {std::move(comm), round};
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    if (why.find("stopped") != std::string::npos) trouble.throw_if_told_soon();
    if (trouble.tell(why)) throw_trouble(cannot_join(rank, why));
    throw;
  } catch (...) {
    trouble.tell("it was interrupted");
    throw;
  }
}

}  // namespace anyccl::torch
