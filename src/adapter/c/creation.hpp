#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapter/c/handle.hpp"

namespace anyccl {

anycclComm_t make_handle(CommPtr comm, std::string name = {});

/// Whether calls are to wait; NULL and what is not set mean the default.
Result<bool> is_blocking(const anycclConfig_t* config);
/// The level of reproducibility that a configuration says; -1: none.
Result<int> level_in(int level);
/// With what is wrong with them: other ranks may have to hear of it.
CommSettings settings_in(const anycclConfig_t* config);
std::string name_in(const anycclConfig_t* config);

/// Runs `job` in the background of a new handle, which has its result later.
Status begin(anycclComm_t* comm, std::string name, std::function<Result<CommPtr>()> job);

/// For calls that take long, during which another thread may abort it.
Result<std::shared_ptr<Team>> keep(anycclComm_t comm);

}  // namespace anyccl
