#include "framework/communicator/planning.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace anyccl {

void Planning::set_policy(TunerPolicy policy) {
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  comm_.me_.policy = std::move(policy);
  comm_.queue_.plans().forget();
}

Result<std::uint8_t> Planning::settings_of_call(const CallSettingsTable::Text& text) {
  return comm_.queue_.plans().settings().number_of(text);
}

Status Planning::check_whole(Call call) const {
  if (!exists(call.op)) call.op = ReduceOp::sum;  // created or wrong: run() sees, with the lock
  const CollectiveQueue& queue = comm_.queue_;
  return queue.plans().check(call);
}

Result<BufferShape> Planning::shape_of(const Call& call) const {
  ANYCCL_CHECK(check_whole(call));
  const CollectiveQueue& queue = comm_.queue_;
  return queue.plans().shape_of(call);
}

Result<double> Planning::predict(const Call& call) {
  if (comm_.forked()) return comm_.failure();
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  ANYCCL_CHECK(comm_.ready(call));
  return comm_.queue_.plans().predict(call);
}

std::string Planning::last_plan() {
  if (comm_.forked()) return "";
  ProgressLock progress_lock = comm_.loop_.progress_lock();
  comm_.loop_.lock(progress_lock);
  const std::shared_ptr<const PreparedCall>& last = comm_.queue_.plans().last();
  if (last == nullptr) return "";
  const Routes& routes = comm_.routes_;
  const bool has_meaning =
      last->only_lines || comm_.me_.size == 1 ||
      std::any_of(routes.publications.begin(), routes.publications.end(),
                  [](const Publications* p) { return p->abilities().has_slots; });
  std::string text = fmt::format("{} {} ", id(*last->routed->algorithm),
                                 has_meaning ? name_of(last->protocol()) : "-");
  for (std::size_t i = 0; i < routes.transports.size(); ++i)
    text += fmt::format("{}{}", i > 0 ? "+" : "", routes.transports[i]->name());
  if (routes.transports.empty()) text += "loopback";
  if (const int parts = last->record.parts; parts > 0)
    text += fmt::format(", {}{} calls as one", parts == 255 ? "at least " : "", parts);
  const CallSettings* const settings = last->settings;
  if (const int level = level_of(comm_.me_.policy, settings); level != kLevelOfRuns)
    text += fmt::format(", level {}", level);
  const std::uint64_t tag = settings == nullptr ? 0 : settings->tag.load(std::memory_order_relaxed);
  return tag == 0 ? text : fmt::format("{}, tag {}", text, tag);
}

}  // namespace anyccl
