"""How communicators come, are split, and end; and what their errors are."""

import json
import pickle
import threading

import numpy as np
import pytest

import anyccl


def joined(size, make):
    """make(rank) for all ranks, at the same time."""
    made = [None] * size

    def join(rank):
        made[rank] = make(rank)

    threads = [threading.Thread(target=join, args=[r]) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


def test_ranks_join_by_a_unique_id_that_went_through_bytes_and_pickle():
    unique = anyccl.UniqueId.create()
    copies = [anyccl.UniqueId(bytes(unique)), pickle.loads(pickle.dumps(unique))]
    assert copies[0] == copies[1] == unique and hash(copies[0]) == hash(unique)
    comms = joined(2, lambda r: anyccl.Communicator.from_unique_id(copies[r], r, 2))
    assert [(c.rank, c.size) for c in comms] == [(0, 2), (1, 2)]


def test_a_unique_id_does_not_show_its_secret():
    assert repr(anyccl.UniqueId.create()) == "<anyccl.UniqueId>"


def test_a_unique_id_has_a_fixed_length():
    with pytest.raises(anyccl.InvalidArgument, match="128 bytes, not 3"):
        anyccl.UniqueId(b"abc")


def test_a_communicator_needs_at_least_one_rank():
    with pytest.raises(anyccl.InvalidArgument):
        anyccl.Communicator.init_all(0)


def test_split_orders_ranks_by_key(four):
    parts = four.each(lambda c: c.split(c.rank % 2, -c.rank))
    assert [(p.rank, p.size) for p in parts] == [(1, 2), (1, 2), (0, 2), (0, 2)]


def test_split_without_a_color_joins_none(four):
    parts = four.each(lambda c: c.split(None if c.rank == 0 else 0))
    assert parts[0] is None and [p.size for p in parts[1:]] == [3, 3, 3]


def test_a_dump_has_the_last_operations(two, tmp_path):
    two.each(lambda c: c.all_reduce(np.ones(3)))
    two.each(lambda c: c.dump(tmp_path / str(c.rank)))
    for rank in range(2):
        dump = json.loads((tmp_path / str(rank)).read_text())
        assert dump["rank"] == rank
        assert [(one["kind"], one["bytes"]) for one in dump["entries"]][-1] == ("all_reduce", 24)


def test_metrics_count_calls_and_bytes(two):
    def counted(comm):
        return {one["operation"]: (one["calls"], one["bytes"], one["failed"]) for one in comm.metrics()["operations"]}

    before = counted(two.comms[0]).get("all_reduce", (0, 0, 0))
    two.each(lambda c: c.all_reduce(np.ones(3)))
    assert counted(two.comms[0])["all_reduce"] == (before[0] + 1, before[1] + 24, 0)
    assert two.comms[0].metrics()["rank"] == 0


def test_metrics_of_the_process_are_for_prometheus(two):
    two.each(lambda c: c.all_reduce(np.ones(3)))
    lines = anyccl.metrics_text().splitlines()
    assert "# TYPE anyccl_operations_total counter" in lines
    assert any(line.startswith("anyccl_operations_total{") and 'operation="all_reduce"' in line for line in lines)


def test_a_dump_that_cannot_be_written_raises(two, tmp_path):
    with pytest.raises(anyccl.SystemFailure):
        two.each(lambda c: c.dump(str(tmp_path / "none" / "dump")))


def test_last_plan_names_algorithm_and_transport(two):
    two.each(lambda c: c.all_reduce(np.ones(1)))
    assert two.comms[0].last_plan.startswith("all_reduce/")


def test_a_communicator_says_who_it_is(two):
    assert repr(two.comms[1]) == "<anyccl.Communicator, rank 1 of 2>"
    two.each(lambda c: c.destroy())
    assert repr(two.comms[1]) == "<anyccl.Communicator, rank 1 of 2, ended>"


def test_destroying_twice_is_destroying_once(alone):
    alone.destroy()
    alone.destroy()


def test_a_destroyed_communicator_refuses_calls(alone):
    alone.destroy()
    with pytest.raises(anyccl.InvalidUsage, match="was destroyed"):
        alone.barrier()


def test_a_block_destroys_at_its_end():
    with anyccl.Communicator.init_all(1)[0] as comm:
        pass
    with pytest.raises(anyccl.InvalidUsage, match="was destroyed"):
        comm.barrier()


def test_a_block_that_raises_aborts_so_that_no_peer_waits(two):
    def run(c):
        if c.rank == 0:
            with pytest.raises(KeyError):
                with c:
                    raise KeyError
        else:
            with pytest.raises(anyccl.Aborted):
                c.barrier()

    two.each(run)


def test_abort_ends_a_call_of_another_thread(two, in_thread):
    inside = threading.Event()

    def abort():
        inside.wait()
        two.comms[0].abort()

    in_thread(abort)
    work = two.comms[0].barrier(async_op=True)
    inside.set()
    with pytest.raises(anyccl.Aborted):
        work.wait()
    with pytest.raises(anyccl.InvalidUsage, match="was aborted"):
        two.comms[0].barrier()


def test_calls_that_differ_name_both_on_all_ranks(two):
    def run(c):
        with pytest.raises(anyccl.InvalidUsage, match="rank 0.*rank 1|rank 1.*rank 0"):
            c.all_reduce(np.ones(2 + c.rank))
        assert isinstance(c.failure, anyccl.InvalidUsage)

    two.each(run)


def test_types_that_differ_are_an_error_on_all_ranks(two):
    def run(c):
        with pytest.raises(anyccl.InvalidUsage, match="f32"):
            c.all_reduce(np.ones(2, [np.float32, np.float64][c.rank]))

    two.each(run)


def test_a_failed_communicator_gives_the_same_error_again(two):
    def run(c):
        errors = []
        for _ in range(2):
            with pytest.raises(anyccl.InvalidUsage) as caught:
                c.all_reduce(np.ones(2 + c.rank))
            errors.append(str(caught.value))
        return errors[0] == errors[1]

    assert two.each(run) == [True, True]


def test_errors_are_also_what_python_calls_them():
    assert issubclass(anyccl.InvalidArgument, ValueError)
    assert issubclass(anyccl.Timeout, TimeoutError)


def test_every_result_code_has_a_class():
    from anyccl.errors import by_code

    assert sorted(by_code) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert all(kind.code == code and issubclass(kind, anyccl.Error) for code, kind in by_code.items())
