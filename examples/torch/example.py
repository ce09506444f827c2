"""Shared by these examples: the choice of the backend, the proof that it was used, and one line about the result."""

import argparse
import os

import torch
import torch.distributed as dist


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser()
    options.add_argument("--backend", default="anyccl", help="of torch.distributed; gloo to compare (%(default)s)")
    return options


def start(options=None) -> argparse.Namespace:
    """Joins the other ranks; returns the options of the command line."""
    given = (options or parser()).parse_args()
    torch.manual_seed(0)
    dist.init_process_group(given.backend)
    assert_used(given.backend)
    return given


def add_device(options: argparse.ArgumentParser) -> None:
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu",
                         help="kind of device that the tensors are on (%(default)s)")


def own_device(kind: str) -> torch.device:
    """The device of this rank, one of those of its host, which is the current one from now on."""
    if kind == "cpu":
        return torch.device(kind)
    module = torch.get_device_module(kind)
    index = int(os.environ["LOCAL_RANK"]) % module.device_count()
    module.set_device(index)
    return torch.device(kind, index)


def assert_used(backend: str, group=None, device="cpu") -> None:
    """Tensors of that device and group (default: of all ranks) travel by that backend and by no other."""
    group = group or dist.group.WORLD
    used = group._get_backend(torch.device(device))
    used = type(getattr(used, "wrapped_pg", used)).__name__  # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps it
    assert used == f"ProcessGroup{backend.rpartition(':')[2].capitalize()}", f"{backend} was asked for, and {used} is used"


def assert_close(got, expected, what: str, rtol=1e-4, atol=1e-5) -> None:
    torch.testing.assert_close(
        torch.as_tensor(got), torch.as_tensor(expected), rtol=rtol, atol=atol, msg=lambda why: f"{what}: {why}")


def assert_same_everywhere(tensor: torch.Tensor, what: str) -> None:
    """Bit for bit on all ranks."""
    first = tensor.detach().clone()
    dist.broadcast(first, src=0)
    assert torch.equal(first, tensor), f"{what}: rank {dist.get_rank()} differs from rank 0"


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)
