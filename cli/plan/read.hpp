#pragma once

#include <string>

#include "anyccl/status.hpp"
#include "plan/cluster.hpp"
#include "plan/model.hpp"

namespace anyccl::cli {

// JSON in the formats of docs/lab/plan.md; `where` is what errors call it. Errors:
// invalid_argument, with the key and the values that are allowed there.
Result<Model> parse_model(const std::string& text, const std::string& where);
Result<Cluster> parse_cluster(const std::string& text, const std::string& where);

// A preset, or else a file. Errors: invalid_argument, naming the presets where there is no such
// file.
Result<Model> find_model(const std::string& name);
Result<Cluster> find_cluster(const std::string& name);

}  // namespace anyccl::cli
