"""Ranks whose tensors are on torch's device "simulated" (tests/torch/device): rank r has device r % 2, on a machine of its
own. What streams do is delayed, by another seed in each test."""

import os
import sys
import zlib

import torch
import torch.distributed as dist
from ranks import fork_ranks, join

sys.path.insert(0, os.environ["SIMULATED_TORCH"])
import simulated_device  # noqa: E402  registers torch.simulated

BACKEND = "cpu:anyccl,simulated:anyccl"


def device_of(rank):
    return torch.device("simulated", rank % 2)


def run_on_devices(size, folder, function, *arguments, backend=BACKEND, most_us=200, timeout_s=30, settings_of_rank_0=()):
    """function(rank, device, *arguments) in a process group of `size` new processes; returns what they return."""
    return fork_ranks(size, _in_group, size, str(folder), backend, most_us, timeout_s, dict(settings_of_rank_0), function, arguments)


def use_simulated_driver(rank, most_us, settings=()):
    """Before this process uses the device for the first time."""
    seed = zlib.crc32(os.environ.get("PYTEST_CURRENT_TEST", "").encode()) % 10000 + rank
    os.environ["SIMULATED_CUDA_CHAOS"] = f"{seed},{most_us}"
    os.environ.update(settings)
    print(f"rank {rank}: SIMULATED_CUDA_CHAOS={os.environ['SIMULATED_CUDA_CHAOS']}")
    torch.set_num_threads(1)  # or threads that come later race for what torch makes anew after a fork
    device = device_of(rank)
    simulated_device.set_device(device.index)
    return device


def _in_group(rank, size, folder, backend, most_us, timeout_s, settings, function, arguments):
    device = use_simulated_driver(rank, most_us, settings if rank == 0 else {})
    join(rank, size, folder, backend, timeout_s)
    result = function(rank, device, *arguments)
    dist.destroy_process_group()
    return result
