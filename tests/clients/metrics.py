"""torchmetrics, synchronized over two processes: one number, and a list of tensors of different lengths."""

import torch
import torch.distributed as dist
import torchmetrics

import anyccl.torch

dist.init_process_group("gloo")
rank = dist.get_rank()
assert isinstance(dist.group.WORLD._get_backend(torch.device("cpu")), anyccl.torch.ProcessGroupAnyccl)
accuracy = torchmetrics.Accuracy(task="binary")
accuracy.update(torch.tensor([1, 1, 0, 0]), torch.tensor([1, 1, 1, rank]))
assert accuracy.compute().item() == 5 / 8
everything = torchmetrics.CatMetric()
everything.update(torch.full((rank + 1,), float(rank)))
assert everything.compute().tolist() == [0, 1, 1]
dist.destroy_process_group()
