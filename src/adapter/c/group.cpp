// The C interface: groups of calls.

#include "framework/stream/group.hpp"

#include <thread>
#include <utility>
#include <vector>

#include "adapter/c/handle.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

struct OpenGroup {
  CallGroup calls;
  struct Init {
    anycclComm_t* handle;
    int size;
    anycclUniqueId id;
    int rank;
  };
  std::vector<Init> inits;
  Status first_error;
};

// Groups belong to the thread that opened them.
thread_local OpenGroup group;
// In the space that is set aside at start, so that asking costs one load.
[[gnu::tls_model("initial-exec")]] thread_local constinit int depth = 0;
// The one of this thread, if depth > 0.
[[gnu::tls_model("initial-exec")]] thread_local constinit OpenGroup* current = nullptr;

/// Creates the ranks of this thread side by side: each waits for the others.
Status run_inits(const std::vector<OpenGroup::Init>& inits) {
  std::vector<Status> problems(inits.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < inits.size(); ++i)
    threads.emplace_back([&, i] {
      const OpenGroup::Init& init = inits[i];
      auto made = join_by_id(init.id, init.size, init.rank);
      if (!made.ok()) {
        problems[i] = made.status();
        return;
      }
      *init.handle = new anycclComm;
      (*init.handle)->set(*std::move(made));
    });
  for (std::thread& t : threads) t.join();
  for (const Status& problem : problems) ANYCCL_CHECK(problem);
  return {};
}

}  // namespace

bool in_group() {
  return depth > 0;
}
void add_to_group(anycclComm_t handle, const Call& call, anycclStream_t stream) {
  current->calls.add(handle->comm, call, stream == nullptr ? nullptr : stream->stream);
}
void add_to_group(anycclComm_t* handle, int size, const anycclUniqueId& id, int rank) {
  current->inits.push_back({handle, size, id, rank});
}
void note_in_group(const Status& status) {
  if (depth > 0 && current->first_error.ok()) current->first_error = status;
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclGroupStart() {
  if (depth++ == 0) current = &group;
  return anycclSuccess;
}

anycclResult_t anycclGroupEnd() {
  return guarded(nullptr, [&]() -> Status {
    if (depth == 0) return error(Code::invalid_usage, "anycclGroupEnd without anycclGroupStart");
    if (--depth > 0) return {};
    OpenGroup& mine = *current;
    CallGroup calls = std::move(mine.calls);
    if (!mine.first_error.ok() || !mine.inits.empty()) {
      const auto inits = std::exchange(mine.inits, {});
      ANYCCL_CHECK(std::exchange(mine.first_error, {}));
      ANYCCL_CHECK(run_inits(inits));
    }
    Status status = calls.run();
    mine.calls = std::move(calls);  // it is empty: the next one has its room
    return status;
  });
}
