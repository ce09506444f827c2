#include "join/meaning.hpp"

#include <algorithm>

#include "errors.hpp"
#include "join/rendezvous.hpp"

namespace anyccl::torch {
namespace {

constexpr std::chrono::seconds kTellAgain{1};
constexpr int kAtOnce = 8;             // ranks that are looked at
constexpr int kAlive = 3;              // different tellings show that a rank waits there now
constexpr char kMark = '#';            // the text after it is new each time
constexpr const char* kGone = "gone";  // the last mark of a rank that has failed for this reason

std::uint64_t digest(const std::string& text) {  // FNV-1a
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

}  // namespace

Meaning::Meaning(c10d::Store& store, int rank, int size, const std::vector<std::uint64_t>& members)
    : store_(store), rank_(rank), members_(members) {
  if (members.size() != static_cast<std::size_t>(size)) return;
  for (const std::uint64_t member : members)
    text_ += (text_.empty() ? "" : ", ") + std::to_string(member);
}

std::string Meaning::place() const {
  return text_.empty() ? "anyccl" : "anyccl/" + std::to_string(digest(text_));
}

std::string Meaning::key(int rank) const {
  return "anyccl/meaning/" + std::to_string(members_[static_cast<std::size_t>(rank)]);
}

void Meaning::set(const std::string& mark) {
  store_.set(key(rank_), text_ + kMark + mark);
}

void Meaning::write_members() {
  if (text_.empty() || Clock::now() < next_) return;
  set(std::to_string(++told_));
  next_ = Clock::now() + kTellAgain;
}

void Meaning::check_members(int awaited) {
  if (told_ == 0 || Clock::now() < next_) return;
  write_members();
  const int end = std::min(static_cast<int>(members_.size()), awaited + kAtOnce);
  for (int rank = awaited; rank < end; ++rank) check(rank);
}

void Meaning::check(int rank) {
  if (!has_key(store_, key(rank))) return;
  const std::string told = store_.get_to_str(key(rank));
  const std::size_t mark = told.find(kMark);
  const std::string theirs = told.substr(0, mark);
  Seen& seen = seen_[rank];
  if (theirs == text_ || told == seen.told) return;
  const bool gone = ++seen.changes > 1 && told.substr(mark + 1) == kGone;
  seen.told = told;
  if (seen.changes < kAlive && !gone) return;
  set(kGone);
  throw_backend_error("anyccl: init_process_group: " + difference(rank, theirs));
}

void Meaning::take_back() {
  if (told_ > 0) delete_key(store_, key(rank_));
}

std::string Meaning::difference(int rank, const std::string& theirs) const {
  const auto name = [&](int r) { return std::to_string(members_[static_cast<std::size_t>(r)]); };
  return "rank " + name(rank) + " means a group of the ranks " + theirs +
         " by this name, and rank " + name(rank_) + " one of " + text_;
}

std::string Meaning::others() const {
  std::string text;
  for (int rank = 0; told_ > 0 && rank < static_cast<int>(members_.size()); ++rank) {
    if (rank == rank_ || !has_key(store_, key(rank))) continue;
    const std::string told = store_.get_to_str(key(rank));
    const std::string theirs = told.substr(0, told.find(kMark));
    if (theirs != text_) text += "; " + difference(rank, theirs);
  }
  return text;
}

}  // namespace anyccl::torch
