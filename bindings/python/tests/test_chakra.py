"""`python -m anyccl.chakra`: the whole catalog as traces, which are read back with protobuf's library."""

import json
import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest
from damage import damaged

from anyccl import chakra

TOOL = os.environ["TEST_TOOL"]
RANKS = 8


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=120, check=False)


def goal_of(algorithm, ranks=RANKS, size="64K", *more):
    return tool("export", algorithm, "-n", str(ranks), "--goal", "-b", size, *more)


def catalog():
    listed = json.loads(tool("info", "--json").stdout)["algorithms"]
    return [f"{collective}/{name}" for collective, names in listed.items() for name in names]


def traces(goal, folder):
    return [list(chakra.read(path)) for path in chakra.write(goal, folder / "trace")]


def attributes(node):
    return {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}


def messages(ranks):
    """Those sent and those received, as (source, target, tag, bytes)."""
    ends = {chakra.COMM_SEND_NODE: Counter(), chakra.COMM_RECV_NODE: Counter()}
    for rank, nodes in enumerate(ranks):
        for node in nodes:
            if node.type in ends:
                its = attributes(node)
                assert rank == its["comm_src" if node.type == chakra.COMM_SEND_NODE else "comm_dst"]
                key = its["comm_src"], its["comm_dst"], its["comm_tag"], its["comm_size"]
                ends[node.type][key] += 1
    return ends.values()


def completed(ranks):
    """How many nodes end if each is done once the nodes before it are, and its message has been sent."""
    done = [set() for _ in ranks]
    sent = set()
    moved = True
    while moved:
        moved = False
        for rank, nodes in enumerate(ranks):
            for node in nodes:
                its = attributes(node)
                message = (its.get("comm_src"), its.get("comm_dst"), its.get("comm_tag"))
                if node.id in done[rank] or not done[rank].issuperset(node.data_deps):
                    continue
                if node.type == chakra.COMM_RECV_NODE and message not in sent:
                    continue
                if node.type == chakra.COMM_SEND_NODE:
                    sent.add(message)
                done[rank].add(node.id)
                moved = True
    return sum(map(len, done))


@pytest.mark.parametrize("algorithm", catalog())
def test_every_algorithm_is_a_trace_that_can_end(algorithm, tmp_path):
    goal = goal_of(algorithm)
    if goal.returncode != 0:
        assert "blocks of" in goal.stderr  # of different sizes, of which one size tells nothing
        assert "_v/" in algorithm
        return
    ranks = traces(goal.stdout, tmp_path)
    assert len(ranks) == RANKS
    sent, received = messages(ranks)
    assert sent == received
    assert not sent or max(sent.values()) == 1  # (source, target, tag) names one message
    for nodes in ranks:
        assert [node.id for node in nodes] == list(range(len(nodes)))
    assert completed(ranks) == sum(map(len, ranks))


def test_bytes_and_times_are_those_of_the_export(tmp_path):
    ranks = traces(goal_of("all_reduce/ring", 4, "4M", "--reduce-rate", "2").stdout, tmp_path)
    for nodes in ranks:
        kinds = Counter(node.type for node in nodes)
        assert kinds == {chakra.COMM_SEND_NODE: 6, chakra.COMM_RECV_NODE: 6, chakra.COMP_NODE: 3}
        for node in nodes:
            if node.type == chakra.COMP_NODE:
                assert (attributes(node)["duration_ns"], node.duration_micros) == (1048576, 1049)
                assert attributes(node)["is_cpu_op"] is True
            else:
                assert attributes(node)["comm_size"] == 1 << 20
                assert attributes(node)["is_cpu_op"] is False


def test_numbers_of_fields_are_those_of_the_schema(tmp_path):
    """The bytes of one file, by MLCommons' et_def.proto: a field's number times 8, plus 2 of text and 0 of numbers."""
    goal = "num_ranks 2\nrank 0 {\na: calc 2000\nb: send 300b to 1 tag 5\nb requires a\n}\nrank 1 {\n}\n"
    first, second = chakra.write(goal, tmp_path / "trace")

    def with_length(message):  # in pieces of 7 bits, the lowest first
        size = len(message)
        return bytes([size] if size < 128 else [size % 128 + 128, size // 128]) + message

    def text(field, words):
        return bytes([field * 8 + 2]) + with_length(words)

    def attribute(name, of_kind):
        return text(10, text(1, name) + of_kind)

    metadata = text(1, b"0.0.4")
    calc = text(2, b"calc") + b"\x18\x04" + b"\x38\x02" + attribute(b"is_cpu_op", b"\xd8\x01\x01")
    calc += attribute(b"duration_ns", b"\x68\xd0\x0f")
    send = b"\x08\x01" + text(2, b"send to 1") + b"\x18\x05" + text(5, b"\x00")
    send += attribute(b"is_cpu_op", b"\xd8\x01\x00")
    for name, of_kind in ((b"comm_size", b"\x48\xac\x02"), (b"comm_src", b"\x38\x00"), (b"comm_dst", b"\x38\x01")):
        send += attribute(name, of_kind)
    send += attribute(b"comm_tag", b"\x38\x05")
    with open(first, "rb") as file:
        assert file.read() == b"".join(map(with_length, (metadata, calc, send)))
    assert list(chakra.read(second)) == []


def test_is_a_program_too(tmp_path):
    command = [sys.executable, "-m", "anyccl.chakra", "-", "-o", tmp_path / "ring"]
    goal = goal_of("all_reduce/ring", 3).stdout
    done = subprocess.run(command, input=goal, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("ring.2.et: 3 ranks\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ring.0.et", "ring.1.et", "ring.2.et"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 0: there is no num_ranks"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\n", "line 3: the text ends here"),
        ("num_ranks 2\nrank 2 {\n}\n", "line 2: 'rank 2 {' is neither"),
        ("num_ranks 9999999999\n", "up to 1048576"),
        ("num_ranks 2\nrank 0 {\nl1: send 8b to 2\n}\n", "line 3: there is no rank 2"),
        ("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 2147483648\n}\n", "line 3: tag 2147483648 is too large"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1 irequires l1\n}\n", "line 4: 'l1 irequires l1' is none of"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1 requires l2\n}\n", "line 4: there is no l2 above"),
    ],
)
def test_what_is_no_goal_is_named_with_its_line(text, words, tmp_path):
    with pytest.raises(chakra.Error) as raised:
        chakra.write(text, tmp_path / "trace")
    assert words in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_damaged_texts_are_refused_by_a_sentence_or_written(tmp_path):
    whole, random, refused = goal_of("all_reduce/ring", 3, "8K").stdout, Random(1), 0
    for _ in range(300):
        text = damaged(whole, random, ["0", "7", "1" * 19, "9" * 19, "9" * 40, "1048576"])
        try:
            paths = chakra.write(text, tmp_path / "trace")
        except chakra.Error:
            refused += 1
            continue
        assert len(paths) <= 3  # none of damages makes ranks of nothing
        for path in paths:
            list(chakra.read(path))
    assert 100 < refused < 300
