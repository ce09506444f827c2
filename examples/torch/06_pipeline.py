# torchrun --standalone --nproc-per-node 2 examples/torch/06_pipeline.py
"""Pipelines: every rank has some layers, and micro-batches go through the ranks one after the other.

Activations go to the next rank and gradients come back, both with isend and irecv, under three schedules:
GPipe (all forward, then all backward), 1F1B (in turns, which needs less memory), and interleaved 1F1B
(every rank has two stages that are not neighbours, which leaves fewer gaps). Losses and gradients are
those of one process. First, batch_isend_irecv by hand: to both neighbours, from both neighbours.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from example import assert_close, say, start

WIDTH, BATCH, MICRO_BATCHES = 32, 32, 8


def exchange_with_neighbours():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    up, down = (rank + 1) % ranks, (rank - 1) % ranks
    mine = torch.full((1000,), float(rank))
    from_up, from_down = torch.empty(1000), torch.empty(1000)
    # Towards `up` has tag 1, towards `down` tag 2: with two ranks both are the same neighbour.
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, mine, up, tag=1),
        dist.P2POp(dist.isend, mine, down, tag=2),
        dist.P2POp(dist.irecv, from_up, up, tag=2),
        dist.P2POp(dist.irecv, from_down, down, tag=1),
    ])
    for work in works:
        work.wait()
    assert from_up.eq(up).all() and from_down.eq(down).all()


def layers(count):
    """The same in every call."""
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count)]


def run_pipeline(schedule_class, stages_per_rank, inputs, targets):
    """Returns the mean loss (on the last rank; None elsewhere), and the gradients of this rank's stages by number."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    all_layers = layers(ranks * stages_per_rank)
    mine = range(rank, len(all_layers), ranks)
    stages = [PipelineStage(all_layers[i], i, len(all_layers), torch.device("cpu")) for i in mine]
    loss_function = nn.functional.mse_loss
    schedule = schedule_class(
        stages if stages_per_rank > 1 else stages[0], n_microbatches=MICRO_BATCHES, loss_fn=loss_function)
    losses = []
    schedule.step(
        *([inputs] if rank == 0 else []),
        **({"target": targets, "losses": losses} if rank == ranks - 1 else {}))
    loss = torch.stack(losses).mean().detach() if losses else None
    return loss, {i: [p.grad for p in all_layers[i].parameters()] for i in mine}


def run_alone(stage_count, inputs, targets):
    model = nn.Sequential(*layers(stage_count))
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    return loss.detach(), [[p.grad for p in stage.parameters()] for stage in model]


def main():
    backend = start().backend
    ranks = dist.get_world_size()
    exchange_with_neighbours()
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)  # the same on all ranks
    for schedule, stages_per_rank in (ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2):
        loss, gradients = run_pipeline(schedule, stages_per_rank, inputs, targets)
        expected_loss, expected = run_alone(ranks * stages_per_rank, inputs, targets)
        if loss is not None:
            assert_close(loss, expected_loss, f"{schedule.__name__}: loss")
        for stage, of_stage in gradients.items():
            for got, right in zip(of_stage, expected[stage], strict=True):
                assert_close(got, right, f"{schedule.__name__}: gradient of stage {stage}")
        dist.barrier()
        say(f"{backend}, {schedule.__name__}: {ranks * stages_per_rank} stages on {ranks} ranks, "
            f"{MICRO_BATCHES} micro-batches, gradients as in one process")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
