"""Arrays of JAX: results are arrays of JAX, and gradients of shards add up to those of the whole batch."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import anyccl


def test_results_are_arrays_of_jax(four):
    def run(c):
        x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3) + c.rank
        return c.all_reduce(x), c.all_gather(x), c.broadcast(x, 2), c.scan(x, "max")

    for rank, results in enumerate(four.each(run)):
        assert all(isinstance(r, jax.Array) for r in results)
        total, gathered, third, largest = map(np.asarray, results)
        base = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(total, 4 * base + 6)
        np.testing.assert_array_equal(gathered, [base + r for r in range(4)])
        np.testing.assert_array_equal(third, base + 2)
        np.testing.assert_array_equal(largest, base + rank)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "bool", "complex64"])
def test_types_of_jax(four, dtype):
    results = four.each(lambda c: c.all_reduce(jnp.ones(3, dtype), "sum"))
    assert all(r.dtype == dtype for r in results)
    assert np.asarray(results[0]).tolist() == [dtype == "bool" or 4] * 3


def test_an_array_of_jax_is_no_output(four):
    x = jnp.ones(2)
    with pytest.raises(anyccl.InvalidArgument, match="read-only"):
        four.comms[0].all_reduce(x, out=x)


def test_gradients_of_shards_add_up_to_those_of_the_batch(four):
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {"w": jax.random.normal(keys[0], (5, 3)), "b": jnp.zeros(3)}
    inputs, targets = jax.random.normal(keys[1], (32, 5)), jax.random.normal(keys[2], (32, 3))

    @jax.jit
    def gradient(weights, x, y):
        return jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w["w"] + w["b"]) - y) ** 2))(weights)

    def train(c):
        mine, net = slice(8 * c.rank, 8 * c.rank + 8), weights
        for _ in range(5):
            own = gradient(net, inputs[mine], targets[mine])
            shared = jax.tree.map(lambda g: c.all_reduce(g, "avg"), own)
            net = jax.tree.map(lambda w, g: w - 0.1 * g, net, shared)
        return net

    alone = weights
    for _ in range(5):
        alone = jax.tree.map(lambda w, g: w - 0.1 * g, alone, gradient(alone, inputs, targets))
    for net in four.each(train):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), net, alone)
