#pragma once
// The state of a rank that creates a communicator: its settings, its deadline, and the sockets at
// which it is found.

#include <memory>
#include <vector>

#include "base/config.hpp"
#include "base/deadline.hpp"
#include "framework/membership/membership.hpp"
#include "framework/tuning/tuner.hpp"
#include "platform/bootstrap/group/hello.hpp"

namespace anyccl {

/// The state of a rank that begins to create a communicator.
struct InitContext {
  std::string name;  ///< The communicator's, in logs.
  Config config;
  CommSettings settings;                    ///< What the communicator's configuration says.
  PlanSettings environment,                 ///< What the environment says about plans,
      communicator;                         ///< and what `settings` say.
  std::shared_ptr<const TunerTable> table;  ///< Named by the user, or found for this machine.
  Deadline deadline;
  bootstrap::Listeners listeners;
  bootstrap::Hello hello;
};

/// The measurements that `config` names or, if it names none, those of this machine, which are read
/// once per process. Null: none. Errors: a named file that cannot be used; a machine's is a
/// warning.
Result<std::shared_ptr<const TunerTable>> table_of(const Config& config);

/// The environment that `settings` hold, else that of now. Errors: as read_config().
Result<Config> environment_of(const CommSettings& settings);
/// Gets ready to be found, by the environment that `settings` hold, else that of now. Errors: what
/// is wrong with a setting; as table_of().
Result<InitContext> prepare_init(int rank, int size, const CommSettings& settings = {});
/// Gets ready by an environment that has been read.
Result<InitContext> prepare_init(int rank, int size, Config config,
                                 const CommSettings& settings = {});
/// When the creation of a communicator that begins now has to be done.
Deadline creation_deadline(const Config& config, const CommSettings& settings);
/// For a communicator over the links of another one, whose `hello` and ANYCCL_TRANSPORT it has:
/// this rank need not be found.
Result<InitContext> prepare_init_within(const bootstrap::Hello& hello, const std::string& transport,
                                        const CommSettings& settings);
/// Bytes of each rank's staging ring: the environment's, the configuration's, or the usual number.
/// Errors: invalid_argument, where so many ranks need more.
Result<std::size_t> ring_bytes_of(const InitContext& init, int size, bool network);

/// The policy by which the ranks of a group choose algorithms, the same on all of them: the
/// machine's table counts only if all have found the same one.
TunerPolicy policy_of(const InitContext& init, const std::vector<bootstrap::Hello>& members);

}  // namespace anyccl
