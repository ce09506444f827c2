#pragma once
// Selection: which algorithm a call uses, and how much of the vector is in flight at a time.
//
// 1. select_algorithm() is a pure function of a TunerQuery and a TunerPolicy, so all ranks of a
//    communicator come to the same answer without talking: their queries are equal, and their
//    policies are compared when they join.
// 2. The policy decides first: an algorithm that is being measured, the user's choice (of the
//    environment, of the call, of the communicator), tables of measurements. Then the rules that
//    are built in.
// 3. Every choice says why it was made (reason()), which `anyccl explain` prints.

#include <memory>
#include <string>
#include <vector>

#include "framework/tuning/plan_settings.hpp"
#include "framework/tuning/tuner_table.hpp"

namespace anyccl {

/// The sources of a choice, in this order.
struct TunerPolicy {
  const Algorithm* measured = nullptr;  ///< For its collective, while it is being measured.
  PlanSettings environment = {};        ///< The user's, before those of a call.
  PlanSettings communicator = {};       ///< After them.
  /// Measurements: the first with at least two algorithms for a query decides.
  std::vector<std::shared_ptr<const TunerTable>> tables = {};
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  std::size_t tile_bytes = 0;  ///< At most this much of the vector, or of each block, at a time.
  std::string_view rule;       ///< That took it; empty: it is the fastest of `table`.
  const TunerTable* table = nullptr;  ///< One of the policy's, if it has decided.
  ProtocolChoice protocols = {};
};
/// As Choice::tile_bytes, unless a user wants less.
std::size_t usual_tile(const TunerQuery& query);
/// The level of reproducibility of a call, whose configuration may be null: the highest of all that
/// say one.
int level_of(const TunerPolicy& policy, const CallSettings* call);
/// Says for people why a choice was made.
std::string reason(const Choice& choice);

/// Where a table says less gain than this, what is built in stays: times vary by as much.
inline constexpr double kClearGain = 1.1;

/// Where a table decides, its fastest algorithm is taken, if what is built in would take kClearGain
/// times as long. What the user excludes is not taken: then it is the one that should be fastest of
/// the others. `call`: its configuration, or null; one that is not `forced` is left out if there is
/// an error with it. Only what meets the query's need of an order is taken. Errors: unsupported if
/// the algorithm that the user named cannot do this shape or has not the order that is needed, or
/// when all that can are excluded; the same of protocols.
Result<Choice> select_algorithm(const TunerQuery& query, const TunerPolicy& policy,
                                const CallSettings* call = nullptr);
/// The setting that keeps a query from having an algorithm; empty: none.
std::string_view excluded_by(const Algorithm& algorithm, const TunerQuery& query,
                             const TunerPolicy& policy);

/// One of the algorithms that could be taken.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  bool possible = true;     ///< It can do this shape.
  Cost cost = {};           ///< If possible.
  double predicted_us = 0;  ///< What the model below says.
  std::optional<double> measured_us = {};
};

/// The prediction for one algorithm, by the model below.
double predict_us(const Algorithm& algorithm, const TunerQuery& query);
/// The prediction for one message.
double predict_message(std::size_t bytes, bool network);

/// All algorithms of the collective, in the order of the catalog.
///
/// The prediction is alpha * rounds + beta * bytes sent by the busiest rank, with constants
/// measured on one machine: it orders algorithms by what they must do and knows nothing of
/// contention. Costs that an algorithm does not promise are counted by the checker, which takes a
/// while from 32 ranks on.
std::vector<Candidate> candidates(const TunerQuery& query, const TunerTable* table);

}  // namespace anyccl
