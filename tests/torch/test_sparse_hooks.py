"""DDP's hooks that send the large elements of the gradients: what they send, keep, save and refuse."""

import warnings

import pytest
import torch
import torch._dynamo  # noqa: F401  DDP imports it: once, and not in every rank
import torch.distributed as dist
from ranks import run_ranks
from torch.nn.parallel import DistributedDataParallel

from anyccl.torch import hooks

RANKS = 3


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))


class Training:
    """A network under DDP; hook None: as DDP does it. `options` are the state's."""

    def __init__(self, hook=hooks.topk, sgd_momentum=0.0, bucket_cap_mb=25, dtype=torch.float32, **options):
        self.model = network().to(dtype)
        self.ddp = DistributedDataParallel(self.model, bucket_cap_mb=bucket_cap_mb)
        self.state = hooks.SparseState(self.ddp, **options) if hook else None
        if hook:
            self.ddp.register_comm_hook(self.state, hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=sgd_momentum)

    def batch(self, step):
        return torch.arange(80.0).reshape(4, 20).sin() * (dist.get_rank() + step + 1)

    def backward(self, step, scale=1.0):
        x = self.batch(step).to(next(self.model.parameters()).dtype)
        (self.ddp(x).square().mean() * scale).backward()

    def run(self, *steps):
        for step in steps:
            self.optimizer.zero_grad()
            self.backward(step)
            self.optimizer.step()
        return self

    def weights(self):
        return torch.cat([p.detach().flatten().float() for p in self.model.parameters()])

    def gradients(self):
        return torch.cat([p.grad.flatten() for p in self.model.parameters()])

    def residuals(self):
        kept = self.state.state_dict()["residuals"]
        return torch.cat([kept[name].flatten() for name, _ in self.model.named_parameters()])


def own_gradients(training, step):
    """The payload of this rank for a batch, without DDP."""
    alone = network()
    alone.load_state_dict(training.model.state_dict())
    alone(training.batch(step)).square().mean().backward()
    return torch.cat([p.grad.flatten() for p in alone.parameters()])


def assert_same_everywhere(tensor):
    everyones = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, tensor)
    assert all(torch.equal(everyones[0], other) for other in everyones)


OPTIONS = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "without masking": {"momentum": 0.9, "masking": False},
    "clipped": {"max_norm": 0.01},
    "bf16": {"values": torch.bfloat16},
    "f16": {"values": torch.float16, "density": 0.3},
    "warm-up": {"warm_up": 4, "density": 0.001},
    "at once": {"start_iteration": 0},
    "forgetful": {"feedback": False},
    "small buckets": {"bucket_cap_mb": 0.0005, "momentum": 0.5},
    "network in bf16": {"dtype": torch.bfloat16, "least_saving": 0.1},
}


@pytest.mark.parametrize("hook", [hooks.topk, hooks.threshold])
@pytest.mark.parametrize("options", OPTIONS)
def test_all_ranks_have_the_same_bits(hook, options):
    def body(rank):
        training = Training(hook, **{"density": 0.02, **OPTIONS[options]}).run(*range(7))
        weights = training.weights()
        assert weights.isfinite().all()
        assert_same_everywhere(weights)
        assert 0 < training.state.bytes_sent < training.state.bytes_dense
    run_ranks(RANKS, body)


def test_nothing_is_left_out_before_the_start():
    def body(rank):
        assert torch.equal(Training(start_iteration=4).run(*range(4)).weights(), Training(None).run(*range(4)).weights())
    run_ranks(2, body)


def test_the_momentum_of_the_state_is_that_of_an_optimizer():
    def body(rank):
        ours, theirs = Training(momentum=0.9, start_iteration=9), Training(None, sgd_momentum=0.9)
        assert torch.allclose(ours.run(*range(5)).weights(), theirs.run(*range(5)).weights(), rtol=1e-5, atol=1e-6)
    run_ranks(2, body)


@pytest.mark.parametrize("hook", [hooks.topk, hooks.threshold])
def test_what_is_sent_and_what_stays_add_up(hook):
    def body(rank):
        training = Training(hook, density=0.02, start_iteration=0)
        given, got = torch.zeros(1203), torch.zeros(1203)
        for step in range(5):
            training.optimizer.zero_grad()
            given += own_gradients(training, step)
            training.backward(step)
            sums = training.gradients()
            assert 0 < sums.count_nonzero() <= RANKS * 30
            got += sums * RANKS
            training.optimizer.step()
        kept = training.residuals()
        dist.all_reduce(given)
        dist.all_reduce(kept)
        assert torch.allclose(got + kept, given, rtol=1e-4, atol=1e-4)
        assert kept.count_nonzero() > 500
    run_ranks(RANKS, body)


def test_residuals_are_saved_and_loaded():
    def body(rank):
        options = {"density": 0.05, "momentum": 0.9, "start_iteration": 0}
        whole, first = Training(**options).run(*range(8)), Training(**options).run(*range(4))
        second = Training(**options)
        second.model.load_state_dict(first.model.state_dict())
        second.state.load_state_dict(first.state.state_dict())
        assert second.state.iteration == 4
        second.run(*range(4, 8))
        assert torch.allclose(second.weights(), whole.weights(), rtol=1e-5, atol=1e-6)
        assert torch.allclose(second.residuals(), whole.residuals(), rtol=1e-4, atol=1e-5)
        with pytest.raises(KeyError, match="there is no parameter 9.weight"):
            second.state.load_state_dict({"iteration": 1, "residuals": {"9.weight": torch.zeros(1)}, "momenta": {}})
        with pytest.raises(ValueError, match="2.bias was of shape"):
            second.state.load_state_dict({"iteration": 1, "residuals": {"2.bias": torch.zeros(1)}, "momenta": {}})
    run_ranks(2, body)


def test_residuals_follow_their_parameters_into_other_buckets():
    def body(rank):
        # Sparse from the first iteration on, and then DDP rebuilds its buckets.
        training = Training(density=0.02, start_iteration=0, bucket_cap_mb=0.0005)
        given, got = torch.zeros(1203), torch.zeros(1203)
        for step in range(4):
            training.optimizer.zero_grad()
            given += own_gradients(training, step)
            training.backward(step)
            got += training.gradients() * 2
        kept = training.residuals()
        dist.all_reduce(given)
        dist.all_reduce(kept)
        assert torch.allclose(got + kept, given, rtol=1e-4, atol=1e-4)
    run_ranks(2, body)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_what_is_not_finite_is_sent_and_not_remembered(bad):
    def body(rank):
        training = Training(density=0.02, momentum=0.9).run(*range(4))
        before, state = training.residuals(), training.state.state_dict()
        training.optimizer.zero_grad()
        training.backward(4, scale=bad if rank == 1 else 1.0)
        assert not training.gradients().isfinite().all(), "a loss scaler would not see it"
        if rank == 1:
            assert torch.equal(training.residuals(), before)
            assert all(map(torch.equal, training.state.state_dict()["momenta"].values(), state["momenta"].values()))
        training.run(5, 6)
        assert training.weights().isfinite().all()
        assert_same_everywhere(training.weights())
    run_ranks(2, body)


def test_gradients_of_no_sync_count_as_one():
    def body(rank):
        training = Training(density=0.02, start_iteration=0)
        with training.ddp.no_sync():
            training.backward(0)
        assert training.state.iteration == 0 and training.state.bytes_sent == 0
        training.backward(1)
        expected = own_gradients(training, 0) + own_gradients(training, 1)
        got, kept = training.gradients() * 2, training.residuals()
        dist.all_reduce(expected)
        dist.all_reduce(kept)
        assert training.state.iteration == 1
        assert torch.allclose(got + kept, expected, rtol=1e-4, atol=1e-4)
    run_ranks(2, body)


def test_bytes_are_those_of_the_payloads():
    def body(rank):
        sparse = Training(density=0.01, start_iteration=0).run(0)
        assert sparse.state.bytes_sent == (RANKS - 1) * (12 + 4 + 13 * 6)  # 1 % of 1203, rounded up
        assert sparse.state.bytes_dense == (RANKS - 1) * (2 * 4 * 1203 // RANKS)
        dense = Training(density=0.5, start_iteration=0).run(0)  # would take more
        assert dense.state.bytes_sent == dense.state.bytes_dense
        assert torch.allclose(dense.weights(), Training(None).run(0).weights(), rtol=1e-5, atol=1e-6)
    run_ranks(RANKS, body)


def test_warm_up_falls_by_factors_of_4():
    state = hooks.SparseState(network(), density=0.01, warm_up=8, start_iteration=2)
    densities = []
    for state.iteration in range(12):
        densities.append(state.density_now())
    assert densities == [0.25] * 4 + [0.25**2] * 2 + [0.25**3] * 2 + [0.01] * 4


def test_rescaled_residuals():
    def body(rank):
        training = Training(density=0.02, momentum=0.9).run(*range(3))
        before = training.residuals()
        training.state.rescale(0.5)
        assert torch.equal(training.residuals(), before * 0.5)
    run_ranks(2, body)


def test_wrong_options_raise():
    for options, words in [({"density": 0}, "density is 0"), ({"momentum": 1}, "momentum is 1"),
                           ({"momentum": 0.9, "feedback": False}, "needs feedback"), ({"max_norm": -1}, "max_norm"),
                           ({"values": torch.int8}, "float32, bfloat16 or float16")]:
        with pytest.raises(ValueError, match=words):
            hooks.SparseState(network(), **options)


def test_no_name_that_torch_gives_up_is_used():
    def body(rank):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            Training(hooks.topk, density=0.02).run(*range(4))
            Training(hooks.threshold, density=0.02).run(*range(4))
    run_ranks(2, body)
