// PlanCache: the plan of a call whose data goes another way.

#include "base/error.hpp"
#include "base/hash.hpp"
#include "framework/collective/call_digest.hpp"
#include "framework/collective/plan_cache.hpp"

namespace anyccl {

Result<std::shared_ptr<const PreparedCall>> PlanCache::plan_meeting(const PreparedCall& data,
                                                                    std::uint64_t way) {
  Call barrier;
  barrier.collective = Collective::barrier;
  ANYCCL_TRY(const std::shared_ptr<const PreparedCall> plain, prepare(barrier, {}));
  const auto meeting = std::make_shared<PreparedCall>(*plain);
  meeting->record = data.record;
  meeting->record.plan = mix(data.record.plan, way);
  meeting->digest = digest_of(meeting->record);
  meeting->recorded = data.recorded;
  bind(*meeting->routed, meeting->geometry, meeting->labels(), 0, meeting->last);
  return std::shared_ptr<const PreparedCall>(meeting);
}

}  // namespace anyccl
