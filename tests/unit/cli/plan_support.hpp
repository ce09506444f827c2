#pragma once

#include <gtest/gtest.h>

#include "plan/read.hpp"
#include "plan/step.hpp"

namespace anyccl::cli {

inline Model model_named(const std::string& name) {
  const Result<Model> model = find_model(name);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

inline Cluster cluster_named(const std::string& name, int devices) {
  Result<Cluster> cluster = find_cluster(name);
  EXPECT_TRUE(cluster.ok()) << cluster.status().message();
  cluster->devices = devices;
  return *cluster;
}

/// As in the papers on Megatron: vocabulary 51200, sequences of 2048 positions.
inline Model gpt(int layers, int hidden, int heads) {
  Model m;
  m.name = "gpt";
  m.layers = layers;
  m.hidden = hidden;
  m.ffn = 4 * hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.vocab = 51200;
  m.positions = 2048;
  m.biased = m.tied = true;
  return m;
}

}  // namespace anyccl::cli
