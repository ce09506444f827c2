// A group that is given other members, by torch 2.14 and later.

#include "backend.hpp"
#include "errors.hpp"

#ifdef C10D_BACKEND_HAS_RECONFIGURE
#include <algorithm>

namespace anyccl::torch {
namespace {

constexpr const char* kName = "reconfigure";
constexpr std::string_view kPrefix = "anyccl:", kDigits = "0123456789abcdef";

std::string handle_of(const anycclUniqueId& id) {
  std::string text(kPrefix);
  for (const char byte : id.internal) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value / 16U], kDigits[value % 16U]};
  }
  return text;
}

anycclUniqueId id_of(const std::string& handle) {
  anycclUniqueId id{};
  const bool fits = handle.starts_with(kPrefix) &&
                    handle.size() == kPrefix.size() + 2 * sizeof id.internal &&
                    handle.find_first_not_of(kDigits, kPrefix.size()) == std::string::npos;
  if (!fits) refuse(kName, "a handle is none of get_reconfigure_handle() of this backend");
  for (std::size_t i = 0; i < sizeof id.internal; ++i) {
    const auto digit = [&](std::size_t k) {
      return static_cast<unsigned>(kDigits.find(handle[kPrefix.size() + 2 * i + k]));
    };
    id.internal[i] = static_cast<char>(digit(0) * 16 + digit(1));
  }
  return id;
}

/// In the order of the ranks.
std::vector<std::string> handles_of(const c10d::ReconfigureOptions& opts) {
  if (const auto* ordered = std::get_if<std::vector<std::string>>(&opts.handles)) return *ordered;
  const auto& set = std::get<std::unordered_set<std::string>>(opts.handles);
  std::vector<std::string> sorted(set.begin(), set.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const {
  if (!next_id_) {
    anycclUniqueId id{};
    check(anycclGetUniqueId(&id), "get_reconfigure_handle");
    next_id_ = id;
  }
  return handle_of(*next_id_);
}

c10::intrusive_ptr<c10d::Work> Backend::reconfigure(const c10d::ReconfigureOptions& opts) {
  const std::vector<std::string> handles = handles_of(opts);
  const auto own = std::find(handles.begin(), handles.end(), get_reconfigure_handle());
  if (own == handles.end()) refuse(kName, "the handles are without that of this rank");
  if (std::find(own + 1, handles.end(), *own) != handles.end())
    refuse(kName, "the handle of this rank is there twice");
  const anycclUniqueId id = id_of(handles[0]);

  set_open(core_, false);
  comm().abort();
  coalescing_.clear();
  rank_ = static_cast<int>(own - handles.begin());
  size_ = static_cast<int>(handles.size());
  if (rank_ == 0) next_id_.reset();
  const auto deadline = deadline_after(opts.timeout.value_or(options_->timeout));
  core_.reset(new Core{
      ::getpid(), JoinedGroup{std::make_shared<SharedComm>(id, rank_, size_, options_->numbers),
                              "reconfigured " + std::to_string(opts.uuid)}});
  set_open(core_, true);
  sequence_ = 0;
  sparse_sequence_ = 0;
  barrier_sequence_ = barriers_forgotten_ = 0;
  comm().wait_until_ready(deadline, kName);
  auto work = c10::make_intrusive<DoneWork>(rank_, c10d::OpType::UNKNOWN, nullptr, std::nullopt, 0,
                                            false, at::TensorList());
  work->end();
  return work;
}

}  // namespace anyccl::torch
#endif
