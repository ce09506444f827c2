"""`anyccl.dsl`: the catalog's algorithms again, in Python; what the tool finds in them; errors that name the line."""

import json
import os
import subprocess

import numpy as np
import pytest

import anyccl
from anyccl import dsl

TOOL = os.environ["TEST_TOOL"]


def tool(*arguments, status=0):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def steps_of(text):
    """The sizes of a file, without the lines that made the steps."""
    sizes = json.loads(text)["sizes"]
    for size in sizes:
        size["steps"] = [[[w for w in s if str(w)[0] != "@"] for s in rank] for rank in size["steps"]]
    return sizes


@dsl.algorithm("all_reduce", parts=lambda n: n)
def ring(p):
    n = p.ranks
    for r in map(p.rank, p.everyone):
        after, before = (r.rank + 1) % n, (r.rank - 1) % n
        if n == 1:
            r.copy(r.input[0], r.output[0])
        for k in range(n - 1):
            r.send(after, (r.input if k == 0 else r.output)[r.rank - k])
            r.recv_reduce(before, r.input[r.rank - k - 1], r.output[r.rank - k - 1])
        for k in range(n - 1):
            r.send(after, r.output[r.rank + 1 - k])
            r.recv(before, r.output[r.rank - k])


@dsl.algorithm("all_reduce", parts=lambda n: n)
def two_shot(p):
    for r in map(p.rank, p.everyone):
        r.send(p.everyone, r.input[0].by(1))
        r.recv_reduce(p.everyone, r.input[r.rank], r.output[r.rank])
        r.send(p.everyone, r.output[r.rank])
        r.recv(p.everyone, r.output[0].by(1), r.output[0].by(1))


def two_level_parts(_, hosts):
    return max(map(len, hosts)) * len(hosts)


@dsl.algorithm("all_reduce", parts=two_level_parts)
def two_level(p):
    slices = max(map(len, p.hosts))

    def sum_over(r, levels, space, first, count, path):
        if not levels:
            return
        (parts, members_of), *above = levels
        members, size = members_of(path), count // parts
        for begin in range(0, parts, len(members)):
            leaders = members[: parts - begin]
            at = first + begin * size
            r.send(leaders, space[at : at + size].by(size))
            if r.rank in leaders:
                place = begin + leaders.index(r.rank)
                mine = first + place * size
                total = r.output[mine : mine + size]
                r.recv_reduce(members, space[mine : mine + size], total)
                sum_over(r, above, r.output, mine, size, [*path, place])
                r.send(members, total)
            r.recv(leaders, r.output[at : at + size].by(size), r.output[at : at + size].by(size))

    for r in map(p.rank, p.everyone):
        inside = next(host for host in p.hosts if r.rank in host)
        across = lambda path: [host[path[0] % len(host)] for host in p.hosts]  # noqa: E731
        levels = [(slices, lambda _, inside=inside: inside), (len(p.hosts), across)]
        sum_over(r, levels, r.input, 0, p.parts, [])


@pytest.mark.parametrize("mine", [ring, two_shot], ids=lambda mine: mine.name)
def test_has_the_steps_of_the_same_in_the_catalog(mine, tmp_path):
    mine.write(tmp_path / "mine.json", ranks=range(1, 10))
    again = tool("export", tmp_path / "mine.json", "-n", "1..9")
    assert steps_of(again) == steps_of(tool("export", f"all_reduce/{mine.name}", "-n", "1..9"))


@pytest.mark.parametrize("hosts", [(2, 2), (3, 3), (4, 4), (3, 1), (2, 3, 3)], ids=str)
def test_has_the_steps_of_the_same_in_the_catalog_on_hosts(hosts, tmp_path):
    two_level.write(tmp_path / "mine.json", ranks=sum(hosts), hosts=[hosts])
    on = ["-n", sum(hosts), "--hosts", ",".join(map(str, hosts))]
    again = tool("export", tmp_path / "mine.json", *on)
    assert steps_of(again) == steps_of(tool("export", "all_reduce/two_level", *on))
    tool("check", "--file", tmp_path / "mine.json")


@dsl.algorithm("all_reduce", parts=lambda n: n)
def followed(p):
    """Each chunk goes round the ring, and its sum goes round again."""
    for i in p.everyone:
        total = p.chunk(i, "input", i)
        for k in range(1, p.ranks):
            total = p.chunk((i + k) % p.ranks, "input", i).reduce(total)
        for k in range(1, p.ranks):
            total = total.copy((total.rank + 1) % p.ranks, "output", i)


@dsl.algorithm("all_gather")
def spread(p):
    for r in p.everyone:
        p.chunk(r, "input", 0).copy(p.everyone, "output", r)


@dsl.algorithm("reduce_scatter")
def collect(p):
    for r in p.everyone:
        others = [p.chunk(other, "input", r) for other in p.everyone if other != r]
        p.chunk(r, "input", r).reduce(*others, first=0)


@dsl.algorithm("all_to_all")
def by_way_of_scratch(p):
    for sender in p.everyone:
        for receiver in p.everyone:
            relay = p.ranks - 1 - sender
            waiting = p.chunk(sender, "input", receiver).copy(relay, "scratch", receiver)
            waiting.copy(receiver, "output", sender)


@dsl.algorithm("broadcast", parts=2)
def chain(p):
    for i in range(2):
        chunk = p.chunk(0, "input", i)
        chunk.copy(0)
        for r in p.everyone[1:]:
            chunk = chunk.copy(r)


@pytest.mark.parametrize("mine", [followed, spread, collect, by_way_of_scratch, chain], ids=lambda mine: mine.name)
def test_chunks_that_are_followed_make_programs_that_are_right(mine, tmp_path):
    mine.write(tmp_path / "mine.json", ranks=range(2, 8))
    assert "right" in tool("check", "--file", tmp_path / "mine.json")


def test_statements_are_put_into_rounds(tmp_path):
    followed.write(tmp_path / "mine.json", ranks=8)
    verdict = json.loads(tool("check", "--file", tmp_path / "mine.json", "--json"))
    assert verdict[0]["sizes"][0]["rounds"] == 2 * (8 - 1)  # as the catalog's ring


def test_runs_by_its_name(tmp_path, monkeypatch):
    followed.write(tmp_path / "mine.json", ranks=[3])
    anyccl.load_algorithms(tmp_path / "mine.json")
    monkeypatch.setenv("ANYCCL_ALGO", "followed")
    comms = anyccl.Communicator.init_all(3)
    with anyccl.group():
        results = [comm.all_reduce(np.full(10, comm.rank + 1.0)) for comm in comms]
    assert all((np.asarray(result) == 6).all() for result in results)
    assert comms[0].last_plan.startswith("all_reduce/followed ")
    for comm in comms:
        comm.abort()


def test_what_the_check_finds_has_its_line(tmp_path):
    @dsl.algorithm("all_reduce")
    def twice(p):
        one, other = map(p.rank, range(2))
        for me, peer in ((one, 1), (other, 0)):
            me.send(peer, me.input[0])
            me.recv_reduce([0, 1], me.input[0], me.output[0])
        one.reduce(one.input[0], one.output[0])  # this line

    line = next(i for i, text in enumerate(open(__file__), 1) if "# this line" in text and "reduce" in text)
    twice.write(tmp_path / "mine.json", ranks=2)
    verdict = tool("check", "--file", tmp_path / "mine.json", status=1)
    assert f"rank 0 step 2 (reduce, test_dsl.py:{line})" in verdict
    assert "mine.json: all_reduce/twice with 2 ranks" in verdict


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda p: p.rank(0).send(4, p.rank(0).input[0]), "rank 0 step 0 (send): there is no rank 4 of 2"),
        (lambda p: p.rank(0).send(1, p.rank(0).input[0:3]), "input[0:3] is not in the 2 chunks"),
        (lambda p: p.rank(1).recv(0, p.rank(1).input[0]), "rank 1 step 0 (recv): i0 is input"),
        (lambda p: p.rank(1).recv(0, dsl.Slice("scratch", 0)), "rank 1 step 0 (recv): s0 is not in the 0 chunks"),
        (lambda p: p.rank(2), "there is no rank 2 of 2"),
        (lambda p: p.chunk(0, "scratch", 1), "nothing was copied to scratch chunk 1 of rank 0"),
        (lambda p: p.chunk(0, "middle", 1), "'middle' is none of input, output, scratch"),
    ],
)
def test_errors_name_the_line_and_the_step(wrong, words):
    with pytest.raises(dsl.Error) as raised:
        dsl.algorithm("all_reduce", parts=2, name="wrong")(wrong).text(2)
    assert str(raised.value).startswith(f"test_dsl.py:{wrong.__code__.co_firstlineno}: ")
    assert words in str(raised.value)


def test_hosts_that_do_not_fit_are_refused():
    with pytest.raises(dsl.Error, match="do not have 4 ranks"):
        ring.program(4, hosts=(2, 1))
    with pytest.raises(dsl.Error, match="none of these"):
        ring.text(4, hosts=[(2, 1)])
    with pytest.raises(dsl.Error, match="no collective"):
        dsl.algorithm("all_reduces")(lambda p: None)


def test_shows_each_step_with_its_line(capsys):
    chain.show(2)
    shown = capsys.readouterr().out
    assert "broadcast/chain for 2 ranks" in shown
    assert "send" in shown and "recv" in shown and "test_dsl.py:" in shown


def test_files_that_are_wrong_raise(tmp_path):
    (tmp_path / "mine.json").write_text('{"format": "anyccl.algorithm/1"}')
    with pytest.raises(anyccl.InvalidArgument, match=r"mine\.json: there is no \"name\""):
        anyccl.load_algorithms(tmp_path / "mine.json")
