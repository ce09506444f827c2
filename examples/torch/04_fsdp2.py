# torchrun --standalone --nproc-per-node 4 examples/torch/04_fsdp2.py
"""FSDP2: every rank keeps a part of the weights, gradients and optimizer state of a transformer.

A block's weights are gathered (all_gather) just before it computes and dropped after; its gradients are
summed and scattered (reduce_scatter). The losses are those of one process with all the data: in float32;
with bfloat16 for weights and messages; and as HSDP on a 2 x 2 mesh, where weights are divided in rows and
equal in columns.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from example import assert_close, assert_used, say, start
from transformer import Transformer, loss_of, sequences

STEPS, BATCH = 8, 16  # BATCH: of all ranks together


def train(model, batches):
    """Returns the loss of every step, of this rank's data."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def train_sharded(mesh, batches, **policy):
    model = Transformer()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, **policy)
    fully_shard(model, mesh=mesh, **policy)
    weights = list(model.parameters())
    assert all(isinstance(w, DTensor) for w in weights)
    shards = mesh.size(mesh.ndim - 1)
    mine, everything = sum(w.to_local().numel() for w in weights), sum(w.numel() for w in weights)
    assert abs(mine * shards / everything - 1) < 0.05, "a rank has its share, and no more"

    losses = train(model, [batch.chunk(dist.get_world_size())[dist.get_rank()] for batch in batches])
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    return losses, torch.cat([w.full_tensor().flatten() for w in weights]).detach()


def main():
    backend = start().backend
    ranks = dist.get_world_size()
    line = init_device_mesh("cpu", (ranks,), mesh_dim_names=("shard",))
    grid = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
    for group in (line.get_group(), grid.get_group("shard"), grid.get_group("replicate")):
        assert_used(backend, group)

    batches = [sequences(BATCH, seed) for seed in range(STEPS)]
    alone = Transformer()
    expected = train(alone, batches)
    expected_weights = torch.cat([w.detach().flatten() for w in alone.parameters()])

    for name, mesh in ("FSDP", line), (f"HSDP 2 x {ranks // 2}", grid):
        losses, weights = train_sharded(mesh, batches)
        assert_close(losses, expected, name)
        assert_close(weights, expected_weights, f"{name}: weights", rtol=1e-2, atol=1e-3)
        say(f"{backend}, {name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}, as in one process")

    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    losses, _ = train_sharded(line, batches, mp_policy=half)
    assert_close(losses, expected, "bfloat16", rtol=0.02, atol=0.02)
    say(f"{backend}, FSDP in bfloat16: loss {losses[0]:.4f} -> {losses[-1]:.4f}, nearly as in float32")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
