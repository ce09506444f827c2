"""Communication hooks of DDP that send fewer bytes.

One sends gradients as codes of a few bits between hosts, and keeps nothing:

    from anyccl.torch import hooks
    ddp.register_comm_hook(hooks.CodecState(codec="int8"), hooks.coded)

Two send only the large elements of the gradients, and remember the rest:

    from anyccl.torch import hooks
    state = hooks.SparseState(model, density=0.01, momentum=0.9)
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(state, hooks.topk)          # or hooks.threshold
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)   # momentum 0: the state has it

Sources: error feedback, Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018; momentum correction,
momentum factor masking, local clipping and warm-up, Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression", ICLR 2018.
docs/numbers/sparse-gradients.md has what each costs, and how to choose.

The gradients that DDP gets are equal on all ranks, bit for bit: with ``topk`` and ``threshold`` every rank adds the
payloads in the order of ranks; with ``coded`` all decode the same sums.
"""

import concurrent.futures
import math

import torch
import torch.distributed as dist

import anyccl
from anyccl import sparse
from anyccl.codec import AllReduce

__all__ = ["CodecState", "SparseState", "coded", "threshold", "topk"]

_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # its name before torch 2.13


class SparseState:
    """The gradients that a rank has not sent yet, and its rule for what to send. One for each model; all ranks give the same options.

    module: the model, or the DistributedDataParallel around it: its parameters have the names of state_dict().
    process_group: that of DDP; None: the default one.
    density: the part of a bucket's elements that is sent.
    momentum: of DGC, in place of the optimizer's, which must then be 0. 0: none.
    masking: what is sent loses its momentum (momentum factor masking), so that it isn't pushed on by old gradients.
    max_norm: a bucket's gradient is clipped to max_norm / sqrt(ranks) before it is added to what was not sent. None: not.
              Clipping the sums, as clip_grad_norm_ does after backward(), sees late gradients and is not the same.
    warm_up: iterations in which the density falls from 1/4 by factors of 4.
    values: torch.float32, bfloat16 or float16, in which values travel; what rounding takes away is sent later.
    feedback: False forgets what is not sent. Training then ends elsewhere: it is there to be compared with.
    start_iteration: the first one in which anything is left out. DDP rebuilds its buckets after its first iteration.
    least_saving: buckets are all-reduced whole where that would take less than this times the bytes.

    The sums of a bucket are sent whole, too, before start_iteration: with what had not been sent, and the momentum goes on.

    no_sync: gradients that DDP has accumulated count as one. DDP's join() is not supported.
    GradScaler: residuals and momentum have the scale of the gradients. Call rescale(new / old) when it changes, or use
        a constant one. Infinities and NaNs are sent and not remembered: all ranks see them and skip the step, and what
        this rank had not sent before is as it was. The gradients that others sent then are lost with the step.
    Weight decay, and whatever else the optimizer adds, is not sparsified.
    Memory: 4 bytes for each element of the gradients, 8 with momentum.

    bytes_sent: what this rank has given to all_gathers so far, times the ranks that it goes to, and for
        buckets that are sent whole what a ring all-reduce sends.
    bytes_dense: what ring all-reduces of all buckets would have sent.
    """

    def __init__(self, module, process_group=None, *, density=0.01, momentum=0.0, masking=True, max_norm=None, warm_up=0,
                 values=torch.float32, feedback=True, start_iteration=2, least_saving=1.2):
        if not 0 < density <= 1:
            raise ValueError(f"anyccl: density is {density}; it is in (0, 1]")
        if not 0 <= momentum < 1:
            raise ValueError(f"anyccl: momentum is {momentum}; it is in [0, 1)")
        if momentum and not feedback:
            raise ValueError("anyccl: momentum needs feedback: it is of what has not been sent")
        if max_norm is not None and not max_norm > 0:
            raise ValueError(f"anyccl: max_norm is {max_norm}")
        if values not in (torch.float32, torch.bfloat16, torch.float16):
            raise ValueError(f"anyccl: values is {values}: they travel as float32, bfloat16 or float16")
        self.group = process_group
        self.density, self.momentum, self.masking, self.max_norm = density, momentum, masking, max_norm
        self.warm_up, self.values, self.feedback = warm_up, values, feedback
        self.start_iteration, self.least_saving = start_iteration, least_saving
        self.iteration = 0
        self.bytes_sent = self.bytes_dense = 0
        module = getattr(module, "module", module) if isinstance(
            module, torch.nn.parallel.DistributedDataParallel) else module
        self._names = {parameter: name for name, parameter in module.named_parameters()}
        self._residuals, self._momenta = {}, {}  # by parameter; views of what the buckets have
        self._buckets = {}  # by index

    def density_now(self) -> float:
        """The density of this iteration."""
        since = max(0, self.iteration - self.start_iteration)
        if since >= self.warm_up:
            return self.density
        return max(self.density, 0.25 ** (1 + 4 * since // self.warm_up))

    def rescale(self, factor: float) -> None:
        """Multiplies what has not been sent: for a loss whose scale changes by this factor."""
        for kept in (*self._residuals.values(), *self._momenta.values()):
            kept.mul_(factor)

    def state_dict(self) -> dict:
        """The memory of this rank, by the names of the parameters. Each rank has its own, and saves its own."""
        def by_name(kept):
            return {self._names[parameter]: flat.view(parameter.shape).clone() for parameter, flat in kept.items()}
        return {"iteration": self.iteration, "residuals": by_name(self._residuals), "momenta": by_name(self._momenta)}

    def load_state_dict(self, saved: dict) -> None:
        """Continues from a state_dict() of this rank. Raises KeyError or ValueError for one of another model."""
        parameters = {name: parameter for parameter, name in self._names.items()}

        def by_parameter(kept):
            for name, values in kept.items():
                if name not in parameters:
                    raise KeyError(f"anyccl: there is no parameter {name}")
                if values.shape != parameters[name].shape:
                    raise ValueError(f"anyccl: {name} was of shape {tuple(values.shape)}, and is of "
                                     f"{tuple(parameters[name].shape)}")
            return {parameters[name]: values.detach().to(torch.float32, copy=True).flatten()
                    for name, values in kept.items()}
        residuals, momenta = by_parameter(saved["residuals"]), by_parameter(saved["momenta"])
        self.iteration, self._residuals, self._momenta = saved["iteration"], residuals, momenta
        self._buckets.clear()

    def _flat(self, kept, parameters):
        """The memory of these parameters, in one vector, which becomes their memory."""
        flat = torch.zeros(sum(parameter.numel() for parameter in parameters))
        first = 0
        for parameter in parameters:
            part = flat[first:first + parameter.numel()]
            if parameter in kept:
                part.copy_(kept[parameter])
            kept[parameter] = part
            first += parameter.numel()
        return flat

    def _of(self, bucket):
        """Residual and momentum of a bucket. DDP may have put other parameters into it than before."""
        parameters = bucket.parameters()
        found = self._buckets.get(bucket.index())
        # Not ==, which compares elements.
        if found is not None and [id(p) for p in found[0]] == [id(p) for p in parameters]:
            return found[1:]
        self._buckets.clear()  # the others get their memory again from what is kept by parameter
        residual = self._flat(self._residuals, parameters)
        momentum = self._flat(self._momenta, parameters) if self.momentum else None
        self._buckets[bucket.index()] = parameters, residual, momentum
        return residual, momentum


def _vector(state, bucket, ranks):
    """The gradient that this rank would send, with all that it has not sent before. And the momentum that is to be masked, or None."""
    gradient = bucket.buffer().detach().float()
    norm = gradient.norm()
    if not norm.isfinite():
        return gradient.clone(), None
    if state.max_norm is not None and norm * math.sqrt(ranks) > state.max_norm:
        gradient = gradient * (state.max_norm / (norm * math.sqrt(ranks)))
    if not state.feedback:
        return gradient.clone(), None
    residual, momentum = state._of(bucket)
    if momentum is None:
        return residual.add_(gradient), None
    sparse.momentum(momentum, residual, gradient, state.momentum)
    return residual, momentum if state.masking else None


def _all_reduce(bucket, vector, group, ranks):
    buffer = bucket.buffer()
    buffer.copy_(vector)
    vector.zero_()
    work = dist.all_reduce(buffer.div_(ranks), group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def _need_host_memory(buffer):
    if not buffer.is_cpu:
        raise ValueError(f"anyccl: this hook is for gradients in host memory, and these are on {buffer.device}")


def _hook(state, bucket, choose, exchange):
    _need_host_memory(bucket.buffer())
    group = state.group if state.group is not None else dist.group.WORLD
    ranks, buffer = group.size(), bucket.buffer()
    vector, momentum = _vector(state, bucket, ranks)
    keep = max(1, math.ceil(state.density_now() * vector.numel()))
    most = sparse.bound(vector.numel(), keep, state.values)
    dense = 2 * buffer.numel() * buffer.element_size() // ranks
    is_sparse = state.iteration >= state.start_iteration and dense >= state.least_saving * most
    state.bytes_dense += (ranks - 1) * dense
    if bucket.is_last():
        state.iteration += 1
    if not is_sparse:
        state.bytes_sent += (ranks - 1) * dense
        return _all_reduce(bucket, vector, group, ranks)

    cut = choose(vector, keep)
    payload = torch.zeros(sparse.bound(vector.numel(), cut.entries, state.values), dtype=torch.uint8)
    used = sparse.pack(vector, cut, momentum=momentum, values=state.values, out=payload)
    work, payloads, sent = exchange(payload, used, group, ranks)
    state.bytes_sent += (ranks - 1) * sent

    def add(future):
        future.wait()  # raises what went wrong
        total = buffer if buffer.dtype == torch.float32 else torch.empty(buffer.numel())
        total.zero_()
        for one in payloads:
            sparse.add(one, total)
        total.div_(ranks)
        return buffer if total is buffer else buffer.copy_(total)
    return work.get_future().then(add)


def _exchange_equal(payload, used, group, ranks):
    """All ranks have room for equally many entries; what a payload does not need of it is zeros."""
    everyones = torch.empty(ranks * payload.numel(), dtype=torch.uint8)
    work = _all_gather(everyones, payload, group=group, async_op=True)
    return work, everyones.view(ranks, -1), payload.numel()


def _exchange_by_length(payload, used, group, ranks):
    lengths = torch.empty(ranks, dtype=torch.int64)
    _all_gather(lengths, torch.tensor([used]), group=group)
    payloads = [torch.empty(length, dtype=torch.uint8) for length in lengths.tolist()]
    work = dist.all_gather(payloads, payload[:used], group=group, async_op=True)
    return work, payloads, used + lengths.element_size()


def topk(state: SparseState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Sends exactly the largest elements of each bucket, equally many from every rank, in one all_gather."""
    return _hook(state, bucket, sparse.top_k, _exchange_equal)


def threshold(state: SparseState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Sends the elements that reach a magnitude which is estimated from a sample: faster to find, about as many.

    Ranks send different numbers of bytes, so there is an all_gather of their lengths first, for which the hook waits.
    """
    return _hook(state, bucket, sparse.threshold, _exchange_by_length)


class CodecState:
    """The state of the hook `coded`: communicators of its own. Created by all ranks, with the same options; one for each model.

    process_group: that of DDP; None: the default one.
    codec: "int8", "mxint8", "int4", "bf16" and others, as anyccl.codec has them; docs/numbers/codecs.md says by how much each is off.
    everywhere: codes also travel between ranks of one host, where they cost time.
    if_slow: it is measured first, and only elements that the codec makes faster are coded.

    Ranks of a host add up their gradients as they are. Buckets stay as they are, too: of float32, bfloat16 or float16. Nothing
    is remembered, so there is nothing to save. Where gradients are coded, an infinity or a NaN makes its
    block of 32 or 128 elements NaN on all ranks, but with "bf16" and "f16". Loss scalers see it in any case.
    """

    def __init__(self, process_group=None, *, codec="int8", everywhere=False, if_slow=False):
        group = process_group if process_group is not None else dist.group.WORLD
        ids = [bytes(anyccl.UniqueId.create())] if group.rank() == 0 else [None]
        dist.broadcast_object_list(ids, src=dist.get_global_rank(group, 0), group=group)
        self.codec = codec
        self._comm = anyccl.Communicator.from_unique_id(anyccl.UniqueId(ids[0]), group.rank(), group.size())
        self._coded = AllReduce(self._comm, codec, everywhere=everywhere, if_slow=if_slow)
        # One thread: buckets come in the order of their calls, while backward() goes on.
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "anyccl-coded")

    def _average(self, buffer):
        self._coded.run(buffer, out=buffer, op="avg")
        return buffer

    def close(self) -> None:
        """Takes leave of the other ranks, which do so, too."""
        self._thread.shutdown()
        try:
            self._coded.destroy()
        finally:
            self._comm.destroy()


def coded(state: CodecState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages each bucket by an all_reduce whose bytes between hosts are codes."""
    begun, buffer = torch.futures.Future(), bucket.buffer()
    _need_host_memory(buffer)
    averaged = begun.then(lambda _: state._average(buffer))  # DDP reads the text of what this raises
    state._thread.submit(begun.set_result, None)
    return averaged
