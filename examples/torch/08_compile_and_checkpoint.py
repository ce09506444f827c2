# torchrun --standalone --nproc-per-node 4 examples/torch/08_compile_and_checkpoint.py
"""torch.compile with collectives inside the graph, and checkpoints that are loaded with other sharding.

The compiled function has all_gather, reduce_scatter and all_reduce in one graph, without a graph break, and
gives the result of the plain function. A transformer that FSDP2 divides among all ranks is trained and saved,
every rank its part; it is loaded into one that is divided on a 2-D mesh, and into one that is not divided.
"""

import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.distributed.checkpoint as checkpoint
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from example import assert_close, parser, say, start
from transformer import Transformer, loss_of, sequences


def collective_function(x):
    """Rows are divided among the ranks: the sum of x's squares over all rows, then normalised columns."""
    group = dist.group.WORLD
    everything = collectives.all_gather_single(x.relu(), 0, group)
    part = collectives.reduce_scatter_single(everything * 2, "sum", 0, group)
    norm = collectives.all_reduce(part.square().sum(0), "sum", group).sqrt()
    return part / (norm + 1)


def compiled(backend, compiler):
    graphs = []

    def compile_and_keep(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend(compiler)(graph, inputs)

    x = torch.randn(6, 10, generator=torch.Generator().manual_seed(dist.get_rank()))
    result = torch.compile(collective_function, backend=compile_and_keep, fullgraph=True)(x)
    assert_close(result, collective_function(x), "compiled")
    called = {str(node.target) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"}
    for name in "all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce":
        assert any(name in target for target in called), f"{name} is not in the graph: {called}"
    say(f"{backend}: compiled by {compiler} into {len(graphs)} graph with 3 collectives, same result")


def sharded(mesh):
    model = Transformer()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def saved_and_loaded(backend):
    ranks = dist.get_world_size()
    line = init_device_mesh("cpu", (ranks,))
    grid = init_device_mesh("cpu", (ranks // 2, 2), mesh_dim_names=("replicate", "shard"))
    whole = lambda model: {
        name: w.full_tensor() if isinstance(w, DTensor) else w for name, w in model.state_dict().items()}

    model = sharded(line)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of(model, sequences(8, dist.get_rank())).backward()
    optimizer.step()
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder[0])

    expected = whole(model)
    for name, other in (f"a {ranks // 2} x 2 mesh", sharded(grid)), ("one process", Transformer()):
        state = {"model": other.state_dict()}
        checkpoint.load(state, checkpoint_id=folder[0])
        other.load_state_dict(state["model"])
        for key, weight in whole(other).items():
            assert torch.equal(weight, expected[key]), f"{name}: {key} differs"
        say(f"{backend}: saved from {ranks} parts, loaded into {name}, {len(expected)} tensors equal")
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


def main():
    options = parser()
    options.add_argument("--compiler", default="aot_eager", help="of torch.compile, for example inductor (%(default)s)")
    given = start(options)
    compiled(given.backend, given.compiler)
    saved_and_loaded(given.backend)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
