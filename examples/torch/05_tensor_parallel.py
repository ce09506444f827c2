# torchrun --standalone --nproc-per-node 2 examples/torch/05_tensor_parallel.py
"""Tensor parallel: every rank has some of the heads and some of the columns of each layer.

First plain: one all_reduce at the end of attention and of the feed-forward network. Then with sequence
parallel: the layers between them are divided along the sequence, so all_gather and reduce_scatter
replace the all_reduce. Outputs and gradients are those of the undivided transformer.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from example import assert_close, assert_used, say, start
from transformer import LENGTH, Transformer, loss_of, sequences


def tensor_parallel(model, mesh):
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "attention.query": ColwiseParallel(),
            "attention.key": ColwiseParallel(),
            "attention.value": ColwiseParallel(),
            "attention.out": RowwiseParallel(),
            "feed_forward.up": ColwiseParallel(),
            "feed_forward.down": RowwiseParallel(),
        })
    return model


def sequence_parallel(model, mesh):
    whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
    # A linear layer that ends a division: partial sums come in, a part of the sequence goes out.
    end = RowwiseParallel(output_layouts=Shard(1))
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "norm1": SequenceParallel(),
            "attention": whole,
            "attention.query": ColwiseParallel(),
            "attention.key": ColwiseParallel(),
            "attention.value": ColwiseParallel(),
            "attention.out": end,
            "norm2": SequenceParallel(),
            "feed_forward": whole,
            "feed_forward.up": ColwiseParallel(),
            "feed_forward.down": end,
        })
    parallelize_module(model, mesh, {
        "blocks.0": PrepareModuleInput(
            input_layouts=Replicate(), desired_input_layouts=Shard(1), use_local_output=True),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    })
    return model


def run(model, batch):
    """Returns the outputs and all gradients, whole."""
    out = model(batch[:, :-1])
    loss_of(model, batch).backward()
    whole = lambda t: t.full_tensor() if isinstance(t, DTensor) else t
    return out.detach(), {name: whole(p.grad) for name, p in model.named_parameters()}


def main():
    backend = start().backend
    ranks = dist.get_world_size()
    assert LENGTH % ranks == 0
    mesh = init_device_mesh("cpu", (ranks,))
    assert_used(backend, mesh.get_group())

    batch = sequences(8)
    expected_out, expected = run(Transformer(), batch)
    for parallel in tensor_parallel, sequence_parallel:
        model = parallel(Transformer(), mesh)
        up = model.blocks[0].feed_forward.up.weight
        assert up.to_local().shape[0] * ranks == up.shape[0]
        out, gradients = run(model, batch)
        assert_close(out, expected_out, f"{parallel.__name__}: outputs")
        for name, gradient in gradients.items():
            assert_close(gradient, expected[name], f"{parallel.__name__}: gradient of {name}")
        say(f"{backend}, {parallel.__name__}: {ranks} ranks, outputs and {len(gradients)} gradients "
            "as of the undivided transformer")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
