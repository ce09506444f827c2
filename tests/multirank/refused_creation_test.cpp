// Creations of which one rank has an argument wrong: all ranks hear of it at once, and the parent
// goes on.

#include <functional>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Create = std::function<anycclResult_t(anycclComm_t comm, bool wrong)>;

void expect_refused(const char* what, const Create& create) {
  SCOPED_TRACE(what);
  run_ranks(3, [&](Communicator& comm) {
    const bool wrong = comm.rank() == Rank{1};
    const anycclResult_t code = create(comm.handle(), wrong);
    EXPECT_EQ(code, wrong ? anycclInvalidArgument : anycclRemoteError) << what;
    if (!wrong) {
      const std::string said = std::string(anycclGetLastError(comm.handle())) +
                               anycclGetLastError(nullptr);  // of a group
      EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
    }
    std::vector<float> x(1, 1);
    EXPECT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x[0], 3);
  });
}

anycclConfig_t config_with(const std::function<void(anycclConfig_t&)>& change, bool wrong) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  if (wrong) change(config);
  return config;
}

TEST(RefusedCreation, by_a_configuration) {
  const std::vector<std::pair<const char*, std::function<void(anycclConfig_t&)>>> changes = {
      {"chunkBytes", [](anycclConfig_t& c) { c.chunkBytes = 17; }},
      {"size", [](anycclConfig_t& c) { c.size = 8; }},
      {"magic", [](anycclConfig_t& c) { c.magic = 8; }},
      {"blocking", [](anycclConfig_t& c) { c.blocking = 7; }},
      {"createTimeoutMs", [](anycclConfig_t& c) { c.createTimeoutMs = -5; }},
      {"algo", [](anycclConfig_t& c) { c.algo = "all_reduce:none"; }},
  };
  for (const auto& [what, change] : changes) {
    const auto& changed = change;
    expect_refused(what, [&](anycclComm_t comm, bool wrong) {
      anycclConfig_t config = config_with(changed, wrong);
      anycclComm_t made = nullptr;
      return anycclCommSplit(comm, 0, 0, &made, &config);
    });
    expect_refused(what, [&](anycclComm_t comm, bool wrong) {
      anycclConfig_t config = config_with(changed, wrong);
      anycclComm_t made = nullptr;
      return anycclCommShrink(comm, nullptr, 0, &made, &config, ANYCCL_SHRINK_DEFAULT);
    });
    expect_refused(what, [&](anycclComm_t comm, bool wrong) {
      anycclConfig_t config = config_with(changed, wrong);
      anycclComm_t made = nullptr;
      return anycclCommGrow(comm, 4, nullptr, -1, &made, &config);
    });
  }
}

TEST(RefusedCreation, by_a_split) {
  expect_refused("newcomm", [](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return anycclCommSplit(comm, 0, 0, wrong ? nullptr : &made, nullptr);
  });
  expect_refused("newcomm, in a group", [](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    EXPECT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(anycclCommSplit(comm, 0, 0, wrong ? nullptr : &made, nullptr), anycclSuccess);
    return anycclGroupEnd();
  });
}

TEST(RefusedCreation, by_a_split_of_a_grid) {
  expect_refused("keep", [](anycclComm_t comm, bool wrong) {
    const int dims[] = {3}, periodic[] = {0}, keep[] = {1};
    anycclTopology_t grid = nullptr;
    EXPECT_EQ(anycclTopologyCreateGrid(&grid, 1, dims, periodic, comm), anycclSuccess);
    anycclComm_t made = nullptr;
    const anycclResult_t code =
        anycclTopologySplit(grid, wrong ? nullptr : keep, comm, &made, nullptr);
    anycclTopologyDestroy(grid);
    return code;
  });
}

TEST(RefusedCreation, by_a_shrink) {
  const auto shrink = [](anycclComm_t comm, int* list, int count, anycclComm_t* made, int flags) {
    return anycclCommShrink(comm, list, count, made, nullptr, flags);
  };
  expect_refused("shrinkFlags", [&](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return shrink(comm, nullptr, 0, &made, wrong ? 9 : ANYCCL_SHRINK_DEFAULT);
  });
  expect_refused("excludeRanksCount", [&](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    int list[] = {2};
    return shrink(comm, list, wrong ? -1 : 0, &made, ANYCCL_SHRINK_DEFAULT);
  });
  expect_refused("newcomm", [&](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return shrink(comm, nullptr, 0, wrong ? nullptr : &made, ANYCCL_SHRINK_DEFAULT);
  });
}

TEST(RefusedCreation, by_a_grow) {
  expect_refused("rank", [](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return anycclCommGrow(comm, 4, nullptr, wrong ? 3 : -1, &made, nullptr);
  });
  expect_refused("nranks", [](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return anycclCommGrow(comm, wrong ? -4 : 4, nullptr, -1, &made, nullptr);
  });
  expect_refused("newcomm", [](anycclComm_t comm, bool wrong) {
    anycclComm_t made = nullptr;
    return anycclCommGrow(comm, 4, nullptr, -1, wrong ? nullptr : &made, nullptr);
  });
}

TEST(RefusedCreation, by_a_window) {
  for (const bool in_group : {false, true}) {
    char memory[8] = {};
    const auto end = [&](anycclResult_t code) {
      if (!in_group) return code;
      EXPECT_EQ(code, anycclSuccess);
      return anycclGroupEnd();
    };
    const auto begin = [&] {
      if (in_group) {
        EXPECT_EQ(anycclGroupStart(), anycclSuccess);
      }
    };
    expect_refused("win", [&](anycclComm_t comm, bool wrong) {
      anycclWindow_t made = nullptr;
      begin();
      return end(anycclCommWindowRegister(comm, memory, 8, wrong ? nullptr : &made, 0));
    });
    expect_refused("buff", [&](anycclComm_t comm, bool wrong) {
      anycclWindow_t made = nullptr;
      begin();
      return end(anycclCommWindowRegister(comm, wrong ? nullptr : memory, 8, &made, 0));
    });
    expect_refused("winFlags", [&](anycclComm_t comm, bool wrong) {
      anycclWindow_t made = nullptr;
      begin();
      return end(anycclCommWindowRegister(comm, memory, 8, &made, wrong ? 0x100 : 0));
    });
  }
}

}  // namespace
}  // namespace anyccl::test
