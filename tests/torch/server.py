"""A process that has imported torch and forks the tests of a run of ctest: an import takes longer than most of them.

    server.py start          the server, for the process that calls this, which is ctest; it ends with that process
    server.py ARGUMENT...    as `python ARGUMENT...`, with PROGRAM.py [ARGUMENT...] or -m MODULE [ARGUMENT...]

A test has a process of its own, with the environment, folder, descriptors 0 to 2 and exit status of the one that asks for
it, and is killed with what it has started when that one is gone. Where no server was started, it is simply executed.
"""

import gc
import os
import pickle
import runpy
import select
import signal
import socket
import sys
import tempfile


def address():
    """Of the server that was started for the process that called this one."""
    return os.path.join(tempfile.gettempdir(), f"anyccl-torch-tests-{os.getuid()}-{os.getppid()}")


def import_all():
    gc.disable()  # a fifth of the time would go there
    import pytest  # noqa: F401
    import torch._dynamo  # noqa: F401  optimizers and DDP import it

    import anyccl.torch  # noqa: F401
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started threads, which a fork does not take along"
    gc.enable()
    gc.freeze()  # else every fork copies all pages with Python objects


def start():
    """Returns in the processes of tests alone, with what to run."""
    path, caller = address(), os.pidfd_open(os.getppid())
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mask = os.umask(0o077)
    if os.path.exists(path):  # of a server that was killed
        os.unlink(path)
    listener.bind(path)
    os.umask(mask)
    import_all()
    listener.listen(64)
    if os.fork():
        sys.exit()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that watch
    while True:
        ready, _, _ = select.select([listener, caller], [], [])
        if caller in ready:
            os.unlink(path)
            sys.exit()
        asker, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os.close(caller)
            return watch(asker)
        asker.close()


def watch(asker):
    """Starts a test, and tells the one that asked for it how it ended; returns in the test's process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    message, fds, _, _ = socket.recv_fds(asker, 1 << 20, 3)
    test = os.fork()
    if test == 0:
        asker.close()
        return become(*pickle.loads(message), fds)
    for fd in fds:
        os.close(fd)
    ended = os.pidfd_open(test)
    ready, _, _ = select.select([asker, ended], [], [])
    if asker in ready:
        os.killpg(0, signal.SIGKILL)
    asker.send(str(os.waitstatus_to_exitcode(os.waitpid(test, 0)[1])).encode())
    os._exit(0)


def become(arguments, environment, folder, fds):
    for fd, copy in zip(fds, range(3)):
        os.dup2(fd, copy)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


def run(arguments):
    if arguments[0] == "-m":
        sys.argv, sys.path[0] = arguments[1:], os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


def ask(arguments):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        try:
            server.connect(address())
        except FileNotFoundError:
            os.execv(sys.executable, [sys.executable, "-B", *arguments])
        socket.send_fds(server, [pickle.dumps((arguments, dict(os.environ), os.getcwd()))], range(3))
        status = server.recv(100)
    return int(status) if status else "the server of these tests has ended"


if __name__ == "__main__":
    if sys.argv[1:] == ["start"]:
        run(start())
    else:
        sys.exit(ask(sys.argv[1:]))
