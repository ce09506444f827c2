# torchrun --standalone --nproc-per-node 2 examples/torch/03_digits_ddp.py
"""DDP on handwritten digits, with its common features: comm hooks, no_sync, join, unused parameters.

Everything is done twice, in a group of the backend and in a group of Gloo, with the same results.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

import digits
from example import assert_close, assert_same_everywhere, assert_used, say, start

def train(group, learn, hook=None, epochs=1, bucket_cap_mb=25):
    """Returns the network and the loss of every step, as the mean over all ranks."""
    model = DDP(digits.network(), process_group=group, bucket_cap_mb=bucket_cap_mb)
    if hook is not None:
        hook(model, group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for images, labels in digits.batches(group, learn, epochs):
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    dist.all_reduce(losses, group=group)
    return model.module, losses / group.size()


def power_sgd(model, group):
    # Its callbacks start operations of their own. On CPUs no backend orders those of several
    # buckets among each other: it needs one bucket, as above.
    state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=10)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


HOOKS = {
    "fp16": lambda model, group: model.register_comm_hook(group, default_hooks.fp16_compress_hook),
    # DDP knows this hook by its name, and allows it only for NCCL.
    "bf16": lambda model, group: model.register_comm_hook(
        group, lambda group, bucket: default_hooks.bf16_compress_hook(group, bucket)),
    "PowerSGD": power_sgd,
}


def no_sync(group, learn):
    """The gradients of two small batches, added up without communication, then sent once."""
    model = DDP(digits.network(), process_group=group)
    (first, second) = list(digits.batches(group, learn, 1))[:2]
    with model.no_sync():
        cross_entropy(model(first[0]), first[1]).backward()
    alone = model.module[0].weight.grad.clone()
    cross_entropy(model(second[0]), second[1]).backward()
    everyones = [torch.empty_like(alone) for _ in range(group.size())]
    dist.all_gather(everyones, alone, group=group)
    assert not torch.equal(everyones[0], everyones[-1]), "no_sync communicates"
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def join(group, learn):
    """The last rank has three batches more than the others, which shadow its communication meanwhile."""
    model = DDP(digits.network(), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    last = group.rank() == group.size() - 1
    mine = list(digits.batches(group, learn, 1))[:6 if last else 3]
    with model.join():
        for images, labels in mine:
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            optimizer.step()
    return digits.weights(model.module)


class Branches(nn.Module):
    """Half of the ranks use one layer, the others the other, and no rank uses the third."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.branches = nn.ModuleList(nn.Linear(64, 10) for _ in range(3))

    def forward(self, images, which):
        return self.branches[which](images.flatten(1))


def unused_parameters(group, learn):
    model = DDP(Branches(), process_group=group, find_unused_parameters=True)
    images, labels = next(digits.batches(group, learn, 1))
    cross_entropy(model(images, group.rank() % 2), labels).backward()
    nobody = model.module.branches[2].weight.grad
    assert nobody is None or nobody.count_nonzero() == 0
    return torch.cat([b.weight.grad.flatten() for b in model.module.branches[:2]])


def main():
    backend = start().backend
    ours, gloo = dist.new_group(), dist.new_group(backend="gloo")
    assert_used(backend, ours)
    learn, test = digits.load()

    model, losses = train(ours, learn, epochs=3, bucket_cap_mb=0.3)
    peer, peer_losses = train(gloo, learn, epochs=3, bucket_cap_mb=0.3)
    assert_close(losses, peer_losses, "losses", rtol=1e-3, atol=1e-4)
    assert_close(digits.weights(model), digits.weights(peer), "weights", rtol=1e-2, atol=1e-3)
    assert_same_everywhere(digits.weights(model), "weights")
    right = digits.accuracy(model, test)
    assert right > 0.9
    say(f"{backend}: loss {losses[0]:.3f} -> {losses[-1]:.3f} as with gloo; "
        f"{right:.1%} of the unseen digits recognised")

    for name, hook in HOOKS.items():
        _, losses = train(ours, learn, hook)
        _, peer_losses = train(gloo, learn, hook)
        assert_close(losses, peer_losses, name, rtol=2e-2, atol=2e-2)
        say(f"{name} hook: loss {losses[0]:.3f} -> {losses[-1]:.3f} as with gloo")

    for what in no_sync, join, unused_parameters:
        result = what(ours, learn)
        assert_close(result, what(gloo, learn), what.__name__)
        assert_same_everywhere(result, what.__name__)
    say("no_sync, join and unused parameters: as with gloo")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
