#pragma once
// The calls that create communicators share this: the configuration is read here, and handles are
// made.

#include <functional>
#include <memory>
#include <string>

#include "c/device/new_device.hpp"
#include "c/handle.hpp"

namespace anyccl {

anycclComm_t make_handle(CommPtr comm, std::string name = {},
                         const NewDevice& device = NewDevice(nullptr));

/// The time that creating a communicator may take, as its settings or the environment say.
std::chrono::milliseconds creation_limit(const CommSettings& settings);
/// The level of reproducibility that a configuration says; -1: none.
Result<int> level_in(int level);
/// A communicator to be made, as a configuration has it.
struct Creation {
  std::string name;
  CommSettings settings;  ///< They have what is wrong with the call here, for all ranks to hear.
  bool blocking = true;
  std::shared_ptr<NewDevice> device;  ///< That the program uses in this thread, if any; not null.
};
/// NULL and fields that are not set mean the default, and for `blocking` and the device the
/// parent's, if any. `problem`: of other arguments. Reads the environment, too, which sets up the
/// log.
Creation creation_in(const anycclConfig_t* config, Status problem = {},
                     const anycclComm* parent = nullptr);

/// As anycclCommSplit. `problem`: of what color and key are made from.
anycclResult_t split_by(anycclComm_t comm, int color, int key, anycclComm_t* newcomm,
                        const anycclConfig_t* config, const Status& problem) noexcept;

/// Gives `background`, which makes the communicator with this device, a handle, which has its
/// result later. Returns in_progress.
Status begin(anycclComm_t* comm, std::string name, std::shared_ptr<NewDevice> device,
             std::shared_ptr<Background> background);

/// Returns the team of `comm`, which lives while the caller has it, also if another thread aborts
/// `comm` during a long call. Errors: as need_comm().
Result<std::shared_ptr<Team>> keep(anycclComm_t comm);

}  // namespace anyccl
