"""Signals that raise, such as Ctrl-C, end waits: for communicators, streams and groups."""

import pytest
from jobs import lines, run


@pytest.mark.parametrize("what", ["creation", "split"])
def test_a_signal_ends_the_wait_for_a_communicator(what, tmp_path):
    """Else the first rank would wait until the second one gives up, which it does only afterwards."""
    done = run(
        2,
        f"""
        import signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupted = {str(tmp_path / "interrupted")!r}
        def interrupt():
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            if {what!r} == "creation" and os.environ["RANK"] == "0":
                interrupt()
            elif {what!r} == "creation":
                while not os.path.exists(interrupted):
                    time.sleep(0.01)
                os._exit(0)
            with anyccl.Communicator.from_env() as comm:
                if comm.rank == 0:
                    interrupt()
                    comm.split(0)
                while not os.path.exists(interrupted):
                    time.sleep(0.01)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            open(interrupted, "w").close()
        except anyccl.Error:  # the other one has left
            pass
        """,
    )
    assert "[0] interrupted" in done.stdout.splitlines(), done.stdout + done.stderr


def test_a_signal_ends_the_waits_for_streams_and_groups():
    done = run(
        2,
        """
        import signal, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)
        comm = anyccl.Communicator.from_env()
        peer, x = 1 - comm.rank, [np.ones(3), np.ones(3)]
        def interrupted(wait):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                wait()
            except KeyboardInterrupt:
                print("interrupted")
        def group():
            with anyccl.group():
                comm.recv(x[0], 0)
                comm.recv(x[0], 0)
        if comm.rank == 1:
            stream = anyccl.Stream()
            interrupted(group)
            comm.recv(x[1], 0, tag=1, stream=stream)
            interrupted(stream.synchronize)
            comm.send(np.ones(1), 0)
            stream.synchronize()
        else:
            comm.recv(np.ones(1), 1)
            comm.send(np.zeros(3), 1, tag=1)
            comm.send(np.zeros(3), 1)
            comm.send(np.full(3, 2.0), 1)
        comm.barrier()
        print(x[0].tolist(), x[1].tolist())
        """,
    )
    assert sorted(lines(done)) == [
        "[0] [1.0, 1.0, 1.0] [1.0, 1.0, 1.0]",
        "[1] [2.0, 2.0, 2.0] [0.0, 0.0, 0.0]",
        "[1] interrupted",
        "[1] interrupted",
    ]


def test_a_signal_ends_other_calls_with_their_communicator():
    """The first rank comes late to each, and hears why it is alone."""
    done = run(
        2,
        """
        import signal, threading
        from anyccl import codec
        signal.signal(signal.SIGINT, signal.default_int_handler)
        world = anyccl.Communicator.from_env()
        def behind_an_open_call(comm):
            comm.all_reduce(np.ones(3), async_op=True)
            comm.destroy()
        calls = {
            "window": lambda comm: comm.window(np.zeros(3)),
            "wait_signal": lambda comm: comm.wait_signal(0),
            "codec": lambda comm: codec.AllReduce(comm, "int8", everywhere=True),
            "route": lambda comm: comm.route(np.zeros(3, np.int64), 2),
            "grid": lambda comm: anyccl.Grid(comm, line=2).neighbor_all_gather(np.ones(3)),
            "destroy": behind_an_open_call,
        }
        for name, call in calls.items():
            comm = world.split(0)
            if comm.rank == 1:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    call(comm)
                except KeyboardInterrupt:
                    print(name, "interrupted")
                world.send(np.ones(1), 0)
            else:
                world.recv(np.ones(1), 1)
                try:
                    if name in ("window", "codec", "route", "grid"):
                        call(comm)  # which may have all that it needs of rank 1
                    comm.all_reduce(np.ones(3))
                    comm.barrier()
                except anyccl.Aborted as error:
                    print(name, "told" if "rank 1" in str(error) and "interrupted" in str(error) else error)
        """,
    )
    names = ["codec", "destroy", "grid", "route", "wait_signal", "window"]
    assert lines(done) == [f"[0] {name} told" for name in names] + [f"[1] {name} interrupted" for name in names]


def test_a_signal_that_ends_a_group_with_streams_leaves_works_that_can_be_asked():
    done = run(
        2,
        """
        import signal, threading
        signal.signal(signal.SIGINT, signal.default_int_handler)
        comm = anyccl.Communicator.from_env()
        if comm.rank == 1:
            stream, works = anyccl.Stream(), []
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                with anyccl.group():
                    works.append(comm.recv(np.ones(3), 0, async_op=True))
                    works.append(comm.recv(np.ones(3), 0, tag=1, async_op=True, stream=stream))
            except KeyboardInterrupt:
                print("interrupted")
            for work in works:
                for ask in (work.wait, work.test):
                    try:
                        ask()
                    except anyccl.Error:
                        print("failed")
        else:
            try:
                comm.recv(np.ones(1), 1)
            except anyccl.Error:
                print("told")
        """,
    )
    assert sorted(lines(done)) == ["[0] told", *4 * ["[1] failed"], "[1] interrupted"]
