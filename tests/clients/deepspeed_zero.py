"""DeepSpeed's ZeRO, stages 1 to 3, on two processes: the loss falls, and is the same in all stages."""

import deepspeed
import torch
import torch.distributed as dist

import anyccl.torch

deepspeed.init_distributed("gloo")
assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), anyccl.torch.ProcessGroupAnyccl)
last = {}
for stage in (1, 2, 3):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": stage},
        "zero_force_ds_cpu_optimizer": False, "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}}})
    batch = torch.ones(4, 16) * (dist.get_rank() + 1)
    losses = []
    for _ in range(5):
        loss = engine(batch).square().mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    last[stage] = losses[-1]
assert max(last.values()) - min(last.values()) < 1e-4, last
dist.destroy_process_group()
