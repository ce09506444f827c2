# torchrun --standalone --nproc-per-node 2 examples/torch/digits_beside_gloo.py
"""The same DDP training with the backend and with Gloo: same losses, the time of a step, and a picture.

The two take turns, step by step, so that any disturbance of the machine meets both. The picture shows
the fastest step of each, from the profiler: the computation of rank 0, and the times at which gradients are added up.
"""

import statistics
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import ProfilerActivity, profile, record_function

import digits
from example import assert_close, assert_used, parser, say, start


WARM_UP = 10  # steps that are not timed


class Training:
    """A network, its optimizer, and the losses and times of its training."""

    def __init__(self, group):
        self.model = DDP(digits.network(), process_group=group, bucket_cap_mb=0.3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.losses, self.seconds = [], []

    def step(self, images, labels):
        began = time.perf_counter()
        with record_function("forward"):
            self.optimizer.zero_grad()
            loss = cross_entropy(self.model(images), labels)
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            self.optimizer.step()
        self.seconds.append(time.perf_counter() - began)
        self.losses.append(loss.detach())

    def trace(self, batches):
        """Returns the span of the fastest step, which other programs disturbed least, and its events."""
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for batch in batches:
                with record_function("step"):
                    self.step(*batch)
        events = profiler.events()
        step = min((e.time_range for e in events if e.name == "step"), key=lambda span: span.elapsed_us())
        return step, [e for e in events if step.start <= e.time_range.start and e.time_range.end <= step.end]


def quartiles_ms(seconds):
    return [1000 * q for q in statistics.quantiles(seconds, n=4)]


def draw(file, traces, times_ms, ranks):
    """One panel per backend, on one time axis: the computation, and below it each bucket's all_reduce."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    colors = {"forward": "#9ecae1", "backward": "#fdae6b", "wait for the sums": "#e0e0e0", "optimizer": "#bcbddc",
              "all_reduce of a bucket": "#31a354"}
    figure, panels = pyplot.subplots(len(traces), sharex=True, figsize=(11, 1.4 + 1.9 * len(traces)), squeeze=False)
    for panel, (backend, (step, events)) in zip(panels[:, 0], traces.items()):
        def spans(chosen):
            found = [e.time_range for e in events if chosen(e.name)]
            return sorted(((t.start - step.start) / 1000, t.elapsed_us() / 1000) for t in found)

        def compute(what, where):
            panel.broken_barh(where, (-0.4, 0.8), color=colors[what], edgecolor="white", linewidth=0.4)

        for phase in "forward", "optimizer":
            compute(phase, spans(lambda name: name == phase))
        layers = spans(lambda name: name.startswith("autograd::engine::evaluate_function"))
        compute("backward", layers)
        computed = sum(layers[-1])
        backward_ends = sum(spans(lambda name: name == "backward")[0])
        compute("wait for the sums", [(computed, backward_ends - computed)])

        sums = spans(lambda name: name == f"{backend}:all_reduce")
        for i, (begin, length) in enumerate(sums):
            panel.barh(1 + 0.5 * i, length, left=begin, height=0.4, color=colors["all_reduce of a bucket"])
            panel.text(begin + length, 1 + 0.5 * i, f"  {length:.2f} ms", va="center", fontsize=8)
        panel.set_yticks([0, 0.75 + 0.25 * len(sums)], ["compute", "all_reduce"])
        panel.set_ylim(0.8 + 0.5 * len(sums), -0.6)  # compute above
        panel.set_title(f"{backend}: {step.elapsed_us() / 1000:.2f} ms, and {times_ms[backend]:.2f} ms in the median",
                        loc="left", fontweight="bold")
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(left=False)
        panel.grid(axis="x", color="#dddddd")
        panel.set_axisbelow(True)
    panels[-1, 0].set_xlabel("milliseconds since the step began")
    panels[-1, 0].set_xlim(0, 1.05 * max(step.elapsed_us() for step, _ in traces.values()) / 1000)
    figure.suptitle(f"The fastest training step of DDP on handwritten digits, rank 0 of {ranks}", x=0.01, ha="left")
    figure.legend(handles=[Patch(color=color, label=label) for label, color in colors.items()],
                  loc="lower center", ncols=len(colors), frameon=False)
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    figure.savefig(file, dpi=120)


def main():
    options = parser()
    options.add_argument("--epochs", type=int, default=5, help="(%(default)s)")
    options.add_argument("--picture", type=Path, default=Path("build/digits_beside_gloo.png"), help="(%(default)s)")
    given = start(options)
    torch.set_num_threads(1)
    learn, test = digits.load()
    groups = {given.backend: dist.new_group()}
    assert_used(given.backend, groups[given.backend])
    if given.backend != "gloo":
        groups["gloo"] = dist.new_group(backend="gloo")
    trainings = {name: Training(group) for name, group in groups.items()}

    for epoch in range(given.epochs):
        for batch in digits.batches(dist.group.WORLD, learn, 1):
            for training in trainings.values():
                training.step(*batch)
    ours = trainings[given.backend]
    for other in trainings.values():
        assert_close(torch.stack(ours.losses), torch.stack(other.losses), "losses", rtol=1e-2, atol=1e-3)
    right = digits.accuracy(ours.model.module, test)
    assert right > 0.9

    say(f"{len(ours.losses)} steps on {dist.get_world_size()} ranks, {right:.1%} of the unseen digits recognised")
    say(f"{'':8}  first loss   last loss    a step (median)   middle half")
    times_ms = {}  # medians
    for name, training in trainings.items():
        low, times_ms[name], high = quartiles_ms(training.seconds[WARM_UP:])
        say(f"{name:8} {training.losses[0]:11.4f} {training.losses[-1]:11.4f} {times_ms[name]:15.2f} ms   "
            f"{low:.2f} to {high:.2f} ms")

    traces = {name: t.trace(digits.batches(dist.group.WORLD, learn, 1)) for name, t in trainings.items()}
    if dist.get_rank() == 0:
        given.picture.parent.mkdir(parents=True, exist_ok=True)
        draw(given.picture, traces, times_ms, dist.get_world_size())
        say(f"One step of each as a picture: {given.picture}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
