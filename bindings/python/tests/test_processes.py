"""Ranks as processes, started by `anyccl run`: how they join, end, fork and die."""

import pytest
from jobs import lines, run


def test_ranks_join_by_the_environment():
    done = run(
        3,
        """
        with anyccl.Communicator.from_env() as comm:
            print(comm.all_reduce(np.array([comm.rank])).tolist(), comm.size)
        """,
    )
    assert lines(done) == ["[0] [3] 3", "[1] [3] 3", "[2] [3] 3"]


def test_large_arrays_arrive_in_other_processes():
    done = run(
        2,
        """
        with anyccl.Communicator.from_env() as comm:
            x = np.random.default_rng(comm.rank).random(1 << 20)
            total = np.random.default_rng(0).random(1 << 20) + np.random.default_rng(1).random(1 << 20)
            print(np.array_equal(comm.all_reduce(x), total))
        """,
    )
    assert lines(done) == ["[0] True", "[1] True"]


@pytest.mark.parametrize("end", ["pass", "sys.exit()", "del comm"])
def test_a_program_may_end_without_destroying(end):
    done = run(
        2,
        f"""
        comm = anyccl.Communicator.from_env()
        print(comm.all_reduce(np.ones(1)))
        {end}
        """,
    )
    assert lines(done) == ["[0] [2.]", "[1] [2.]"]


def test_a_program_may_end_with_works_that_never_complete():
    done = run(
        2,
        """
        comm = anyccl.Communicator.from_env()
        kept = comm.recv(np.zeros(9), 1 - comm.rank, async_op=True)
        comm.recv(np.zeros(9), 1 - comm.rank, async_op=True)  # dropped
        op = comm.pre_mul_sum(2, "float64")
        print("end")
        """,
    )
    assert lines(done) == ["[0] end", "[1] end"]


def test_a_program_may_end_while_a_daemon_thread_waits():
    done = run(
        2,
        """
        import threading
        comm = anyccl.Communicator.from_env()
        comm.barrier()
        waits = threading.Event()
        def wait():
            waits.set()
            comm.recv(np.zeros(1), 1 - comm.rank)
        threading.Thread(target=wait, daemon=True).start()
        waits.wait()
        print("end")
        """,
    )
    assert lines(done) == ["[0] end", "[1] end"]


# The ranks of these are in one process, so that none hears of another one's end.


@pytest.mark.parametrize("waits", ["stream.run(threading.Event().wait)", "first.recv(np.zeros(9), 1, stream=stream)"])
def test_a_program_may_end_with_work_in_streams(waits):
    done = run(
        1,
        f"""
        import threading
        first, second = anyccl.Communicator.init_all(2)
        stream = anyccl.Stream()
        {waits}
        x = np.ones(3)
        first.all_reduce(x, out=x, stream=stream)
        stream.run(lambda: print("never"))
        event = anyccl.Event()
        event.record(stream)
        print("end")
        """,
    )
    assert lines(done) == ["[0] end"]


def test_a_program_may_end_while_functions_run_in_streams():
    done = run(
        1,
        """
        comms, xs = anyccl.Communicator.init_all(2), [np.zeros(1000), np.zeros(1000)]
        streams = [anyccl.Stream(), anyccl.Stream()]
        for _ in range(1000):
            for c, x, stream in zip(comms, xs, streams):
                stream.run(lambda: np.add(x, 1, out=x))
                c.all_reduce(x, "max", out=x, stream=stream)
        print("end")
        """,
    )
    assert lines(done) == ["[0] end"]


def test_a_program_may_end_while_an_operator_is_at_work_in_the_background():
    done = run(
        1,
        """
        comms = anyccl.Communicator.init_all(2)
        ops = [c.create_operator(lambda a, b: np.add(a, b, out=b)) for c in comms]
        for _ in range(100):
            for c, op in zip(comms, ops):
                c.all_reduce(np.ones(10000), op, async_op=True)
        print("end")
        """,
    )
    assert lines(done) == ["[0] end"]


def test_an_exit_handler_may_wait_for_streams():
    done = run(
        2,
        """
        import atexit
        comm = anyccl.Communicator.from_env()
        stream, x = anyccl.Stream(), np.ones(2)
        def finish():
            stream.synchronize()
            print(x.tolist())
        atexit.register(finish)
        stream.run(lambda: np.add(x, 1, out=x))
        comm.all_reduce(x, out=x, stream=stream)
        """,
    )
    assert lines(done) == ["[0] [4.0, 4.0]", "[1] [4.0, 4.0]"]


def test_a_child_of_fork_may_end_and_refuses_streams_of_its_parent():
    done = run(
        1,
        """
        stream = anyccl.Stream()
        stream.run(lambda: None)
        stream.synchronize()
        child = os.fork()
        if child == 0:
            try:
                stream.run(print)
            except anyccl.InvalidUsage as e:
                print("before fork" in str(e))
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        """,
    )
    assert lines(done) == ["[0] True"]


def test_a_peer_that_dies_is_an_error_of_streams_groups_and_objects():
    done = run(
        2,
        """
        comm = anyccl.Communicator.from_env()
        comm.barrier()
        if comm.rank == 1:
            os._exit(7)
        stream = anyccl.Stream()
        comm.all_reduce(np.ones(1000), stream=stream)
        def group():
            with anyccl.group():
                comm.all_reduce(np.ones(1))
                comm.all_reduce(np.ones(1))
        for wait in (stream.synchronize, group, lambda: comm.all_gather_object(1)):
            try:
                wait()
            except anyccl.RemoteError as e:
                print("rank 1" in str(e))
        """,
        "--keep-going",
    )
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["[0] True"] * 3


def test_a_sequence_may_split_its_communicator():
    done = run(
        2,
        """
        comm = anyccl.Communicator.from_env()
        with anyccl.sequence(comm):
            part = comm.split(comm.rank)
            print(part.size, comm.all_reduce(np.ones(1)).tolist())
        """,
    )
    assert lines(done) == ["[0] 1 [2.0]", "[1] 1 [2.0]"]


def test_a_communicator_from_before_fork_is_refused_in_the_child():
    done = run(
        2,
        """
        comm = anyccl.Communicator.from_env()
        work = comm.all_reduce(np.ones(1), async_op=True)
        child = os.fork()
        if child == 0:
            try:
                comm.barrier()
            except anyccl.InvalidUsage as e:
                print("before fork" in str(e))
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        assert work.wait() == 2
        comm.barrier()
        """,
    )
    assert lines(done) == ["[0] True", "[1] True"]


def test_a_peer_that_dies_is_an_error_that_names_its_rank():
    done = run(
        3,
        """
        comm = anyccl.Communicator.from_env()
        comm.barrier()
        if comm.rank == 1:
            os._exit(7)
        try:
            comm.all_reduce(np.ones(1000))
        except anyccl.RemoteError as e:
            print("rank 1" in str(e), isinstance(comm.failure, anyccl.RemoteError))
        """,
        "--keep-going",
    )
    assert done.returncode == 7
    assert sorted(done.stdout.splitlines()) == ["[0] True True", "[2] True True"]


def test_a_rank_that_does_not_come_is_named_when_the_time_is_up():
    done = run(
        2,
        """
        os.environ["ANYCCL_TIMEOUT"] = "1"
        if os.environ["RANK"] == "0":
            try:
                anyccl.Communicator.from_env()
            except anyccl.Timeout as e:
                print("1" in str(e))
        """,
    )
    assert lines(done) == ["[0] True"]


def test_importing_anyccl_imports_no_framework():
    done = run(1, """print({"torch", "jax", "ml_dtypes"} & set(sys.modules))""")
    assert lines(done) == ["[0] set()"]


def test_ranks_that_are_left_carry_on_from_the_last_step_of_all():
    done = run(
        3,
        """
        comm = anyccl.Communicator.from_env()
        first = comm.rank
        assert comm.completed[1] == 0
        try:
            for step in range(10):
                if first == 1 and step == 5:
                    os._exit(0)
                comm.all_reduce(np.ones(1000))
        except anyccl.RemoteError:
            pass
        try:
            print(comm.survivors)
        except anyccl.InvalidUsage:
            pass
        left = comm.shrink(after_failure=True, name="left")
        assert comm.survivors == [0, 2]
        here, everywhere = comm.completed
        comm.destroy()
        total = left.all_reduce(np.array([first]))
        print(left.rank, left.size, total, 4 <= everywhere <= here <= 5)
        try:
            left.shrink([0, 1], after_failure=True)
        except anyccl.InvalidArgument as wrong:
            print("excluded" in str(wrong).lower() or "exclude" in str(wrong))
        left.destroy()
        """,
    )
    assert lines(done) == ["[0] 0 2 [2] True", "[0] True", "[2] 1 2 [2] True", "[2] True"]


def test_ranks_carry_on_after_one_has_revoked_the_communicator():
    done = run(
        3,
        """
        comm = anyccl.Communicator.from_env()
        try:
            comm.barrier()  # which may still wait somewhere when rank 1 has left it
            if comm.rank == 1:
                comm.revoke()
            comm.all_reduce(np.ones(1000))
        except anyccl.Aborted as e:
            print("rank 1" in str(e) and "revoked the communicator" in str(e), repr(comm.failure)[:7])
        left = comm.shrink(after_failure=True)
        comm.destroy()
        print(left.all_reduce(np.array([left.rank])))
        left.destroy()
        """,
    )
    assert lines(done) == sorted(f"[{rank}] {line}" for rank in range(3) for line in ("True Aborted", "[3]"))


def test_ranks_shrink_without_a_failure():
    done = run(
        3,
        """
        with anyccl.Communicator.from_env() as comm:
            if comm.rank != 1:
                with comm.shrink([1]) as fewer:
                    print(fewer.all_reduce(np.array([comm.rank])))
            comm.barrier()
        """,
    )
    assert lines(done) == ["[0] [2]", "[2] [2]"]


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_ranks_that_are_left_grow_by_a_new_process(transport):
    done = run(
        3,
        f"""
        import pickle, subprocess
        os.environ["ANYCCL_TRANSPORT"] = "{transport}"
        newcomer = '''if True:
            import anyccl, numpy as np, os, pickle, sys
            id = pickle.load(sys.stdin.buffer)
            with anyccl.Communicator.from_unique_id(id, 2, 3) as comm:
                print("new", comm.all_reduce(np.full(50000, 10))[-1], flush=True)
        '''
        comm = anyccl.Communicator.from_env()
        first = comm.rank
        try:
            for step in range(10):
                if first == 1 and step == 5:
                    os._exit(0)
                comm.all_reduce(np.ones(1000))
        except anyccl.RemoteError:
            pass
        left = comm.shrink(after_failure=True)
        comm.destroy()
        id = process = None
        if left.rank == 0:
            id = anyccl.UniqueId.create()
            process = subprocess.Popen([sys.executable, "-B", "-c", newcomer], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
            process.stdin.write(pickle.dumps(id))
            process.stdin.close()
        with left.grow(3, id, name="grown") as grown:
            print(grown.rank, grown.size, grown.all_reduce(np.full(50000, first))[-1])
        left.destroy()
        if process is not None:
            print(process.stdout.read().decode().strip())  # two writers of one pipe would mix their lines
            assert process.wait() == 0
        """,
    )
    assert lines(done) == ["[0] 0 3 12", "[0] new 12", "[2] 1 3 12"]
