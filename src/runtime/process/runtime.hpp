#pragma once
// Communicators are made here: by an id, by the environment of a launcher, within a process, or of
// another one.

#include <memory>
#include <span>
#include <vector>

#include "anyccl/anyccl.h"
#include "framework/communicator/background_progress.hpp"
#include "framework/stream/stream.hpp"

namespace anyccl {

inline constexpr std::size_t kAnyRing = ~std::size_t{0};  // as ring_bytes_for() has it

using CommPtr = std::shared_ptr<Comm>;
class Agreement;

/// Makes an id and keeps the server behind it until its group is formed.
Result<anycclUniqueId> make_unique_id();
/// Gives its group up: ranks that wait for it are told so. Ids of other processes: does nothing.
void drop_unique_id(const anycclUniqueId& id);
/// `name`: of the communicator, in logs. `settings`: of its configuration.
Result<CommPtr> join_by_id(const anycclUniqueId& id, int size, int rank,
                           const std::string& name = {}, const CommSettings& settings = {});
Result<CommPtr> join_by_environment(const std::string& name = {},
                                    const CommSettings& settings = {});
/// All ranks of one communicator, in this process.
Result<std::vector<CommPtr>> join_all_here(int size);
/// Collective over `parent`. Null for color ANYCCL_SPLIT_NOCOLOR.
Result<CommPtr> split(Comm& parent, int color, int key, std::size_t most_ring_bytes = kAnyRing,
                      const std::string& name = {}, const CommSettings& settings = {});
/// Over the ranks of `parent` that are not `excluded`, which alone make the call.
Result<CommPtr> shrink(Comm& parent, std::span<const int> excluded, const std::string& name,
                       const CommSettings& settings);
/// Over the ranks of `parent`, which has failed, that are left: they agree, `among` them, on those
/// that live and are `excluded` by none of them. Errors: timeout naming ranks that do not come;
/// remote_error where others do without this rank, or one cannot take part.
Result<CommPtr> carry_on(Comm& parent, Agreement& among, std::span<const int> excluded,
                         const std::string& name, const CommSettings& settings);
/// Collective over `parent`, while other ranks join by the same id: `size` ranks in all. `id`: on
/// one rank, null on the others.
Result<CommPtr> grow(Comm& parent, int size, const anycclUniqueId* id, const std::string& name,
                     const CommSettings& settings);
/// The background thread of this process. Stopped at exit.
BackgroundProgress& background_progress();
/// Stopped at exit.
std::shared_ptr<HostStream> make_stream();

}  // namespace anyccl
