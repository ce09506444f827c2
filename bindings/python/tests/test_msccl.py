"""`python -m anyccl.msccl`: algorithms of MSCCL are imported, and proved by the tool."""

import os
import subprocess
import sys
from random import Random

import pytest
from damage import damaged

from anyccl import dsl, msccl

TOOL = os.environ["TEST_TOOL"]


def step(number, kind, source, target, *, count=1, after=(-1, -1)):
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{source[0]}" srcoff="{source[1:]}" dstbuf="{target[0]}" '
        f'dstoff="{target[1:]}" cnt="{count}" depid="{after[0]}" deps="{after[1]}" hasdep="0"/>'
    )


def block(number, steps, *, send=-1, recv=-1, channel=0):
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="{channel}">{"".join(steps)}</tb>'


def algo(collective, ranks, chunks, gpus, in_place=1):
    inside = "".join(f'<gpu id="{g}" i_chunks="{chunks}" o_chunks="{chunks}">{b}</gpu>' for g, b in enumerate(gpus))
    return (
        f'<algo name="of-test" proto="LL" nchannels="1" nchunksperloop="{chunks}" ngpus="{ranks}" coll="{collective}" '
        f'inplace="{in_place}">{inside}</algo>'
    )


def ring(n):
    """Reduce-scatter and all-gather: s, rrs..., rrcs, rcs..., r."""
    gpus = []
    for g in range(n):
        kinds = ["s", *["rrs"] * (n - 2), "rrcs", *["rcs"] * (n - 2), "r"]
        steps = [step(k, kind, f"i{(g - k) % n}", f"i{(g - k) % n}") for k, kind in enumerate(kinds)]
        gpus.append(block(0, steps, send=(g + 1) % n, recv=(g - 1) % n))
    return algo("allreduce", n, n, gpus)


def rings(n, instances):
    """That ring on parts of the vector, each on a channel of its own."""
    gpus = []
    for g in range(n):
        kinds = ["s", *["rrs"] * (n - 2), "rrcs", *["rcs"] * (n - 2), "r"]
        blocks = []
        for i in range(instances):
            chunks = [f"i{(g - k) % n * instances + i}" for k in range(len(kinds))]
            steps = [step(k, kind, chunk, chunk) for k, (kind, chunk) in enumerate(zip(kinds, chunks))]
            blocks.append(block(i, steps, send=(g + 1) % n, recv=(g - 1) % n, channel=i))
        gpus.append("".join(blocks))
    return algo("allreduce", n, n * instances, gpus)


def direct_all_to_all(n, own_block="cpy"):
    """A thread block for each peer, and one for the own block, or a <copy> of it, not in place."""
    gpus = []
    for g in range(n):
        own = [step(1, "cpy", f"i{g}", f"o{g}")] if own_block == "cpy" else []
        blocks = [block(0, [step(0, "nop", "i0", "o0"), *own])]
        if own_block == "copy":
            blocks.insert(0, f'<copy i_off="{g}" o_off="{g}"/>')
        for at, peer in enumerate((p for p in range(n) if p != g), 1):
            steps = [step(0, "s", f"i{peer}", "o0", after=(0, 0)), step(1, "r", "i0", f"o{peer}")]
            blocks.append(block(at, steps, send=peer, recv=peer))
        gpus.append("".join(blocks))
    return algo("alltoall", n, n, gpus, in_place=0)


def one_pass(n):
    """Each rank adds up what all send to it in an order of its own, beginning with itself."""
    gpus = []
    for g in range(n):
        peers = [(g + k) % n for k in range(1, n)]
        blocks = [block(k, [step(0, "s", "i0", "s0")], send=p) for k, p in enumerate(peers)]
        for k, p in enumerate(peers, n):
            blocks.append(block(k, [step(0, "r", "i0", f"s{p}")], recv=p))
        sums = [step(k, "re", f"s{p}", "o0", after=(n + k, 0)) for k, p in enumerate(peers)]
        blocks.append(block(2 * n, sums))
        gpus.append("".join(blocks))
    return algo("allreduce", n, 1, gpus)


def imported(text, folder, name="mine"):
    (folder / "mine.xml").write_text(text)
    msccl.read(folder / "mine.xml", name).write(folder / "mine.json", ranks=text.count("<gpu "))
    return folder / "mine.json"


def check(file):
    return subprocess.run([TOOL, "check", "--file", file], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "text", [ring(2), ring(5), direct_all_to_all(3), direct_all_to_all(4), direct_all_to_all(3, own_block="copy")]
)
def test_algorithms_of_msccl_are_right_here(text, tmp_path):
    done = check(imported(text, tmp_path))
    assert done.returncode == 0, done.stdout


def test_channels_that_are_many_need_few_slots(tmp_path):
    done = check(imported(rings(8, 24), tmp_path))
    assert done.returncode == 0, done.stdout
    slots = done.stdout.splitlines()[-1].split()[7]
    assert int(slots) <= 2, done.stdout


def test_ranks_that_add_up_in_other_orders_are_found(tmp_path):
    done = check(imported(one_pass(4), tmp_path))
    assert done.returncode == 1
    assert "other bits" in done.stdout


def test_is_a_program_too(tmp_path):
    (tmp_path / "mine.xml").write_text(ring(3))
    command = [sys.executable, "-m", "anyccl.msccl", tmp_path / "mine.xml", "-o", tmp_path / "mine.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "all_reduce/of_test for 3 ranks" in done.stdout
    assert check(tmp_path / "mine.json").returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><algo/>', "has a DOCTYPE"),
        ("<algo", "line 1"),
        ("<algorithm/>", "no <algo>"),
        (ring(2).replace("allreduce", "custom"), "'custom' is none of allreduce"),
        (ring(2).replace('nchunksperloop="2"', 'nchunksperloop="x"'), "nchunksperloop='x'"),
        (ring(2).replace('type="rrcs"', 'type="rrx"'), "gpu 0 tb 0 step 1: type 'rrx' is none of"),
        (ring(2).replace('send="1"', 'send="5"'), "it sends to gpu 5"),
        (ring(3).replace('type="s"', 'type="nop"'), "never gets what it waits for"),
        (ring(2).replace('srcoff="0"', 'srcoff="7"'), "is read before it is written"),
    ],
)
def test_what_cannot_be_imported_is_named(text, words, tmp_path):
    with pytest.raises(msccl.Error) as raised:
        imported(text, tmp_path)
    assert words in str(raised.value)


def test_damaged_files_are_refused_by_a_sentence_or_imported(tmp_path):
    random, path, refused = Random(1), tmp_path / "damaged.xml", 0
    numbers = ["0", "-1", "-7", "65537", "4294967298", "1" * 30, "9" * 5000, "x", "1e9"]
    for _ in range(300):
        text = damaged(random.choice([ring(3), rings(2, 2)]), random, numbers)
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            msccl.read(path).write(tmp_path / "made.json", ranks=random.choice([2, 3]))
        except (msccl.Error, dsl.Error):
            refused += 1
    assert 100 < refused < 300


def test_odd_files_are_refused(tmp_path):
    for odd in (tmp_path, "/dev/zero", "/dev/null", tmp_path / "none"):
        with pytest.raises((msccl.Error, OSError)):
            msccl.read(odd)
