"""Starting programs, and ending them with all that they started."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 60  # for one library and turn


class Failed(Exception):
    """A program could not be built or run; the message says which and why. `output`: its output so far."""
    def __init__(self, message, output=""):
        super().__init__(message)
        self.output = output


def start(command, **options):
    return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True, **options)


def end(process):
    """A launcher gets the chance to end its ranks."""
    for number, patience_s in ((signal.SIGTERM, 3), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience_s)
        except ProcessLookupError:
            process.wait()
        except subprocess.TimeoutExpired:
            continue


def finish(processes, what, timeout_s=TIMEOUT_S):
    """The output of the first of them, once all have ended well."""
    try:
        outputs = [process.communicate(timeout=timeout_s) for process in processes]
    except BaseException as why:  # also an interrupt, for example: no process may go on running
        for process in processes:
            end(process)
        if isinstance(why, subprocess.TimeoutExpired):
            raise Failed(f"{what} took longer than {timeout_s} s", processes[0].communicate()[0]) from None
        raise
    for process, (out, err) in zip(processes, outputs):
        if process.returncode != 0:
            lines = (err.strip() or out.strip()).splitlines()[-3:]
            raise Failed(f"{what} exited with {process.returncode}: " + " | ".join(lines)[-300:], outputs[0][0])
    return outputs[0][0]


def call(command, timeout_s=TIMEOUT_S, **options):
    """Runs `command` and returns its output."""
    return finish([start(command, **options)], Path(command[0]).name, timeout_s)


def compile_with(compiler, source, program, *libraries):
    if shutil.which(compiler[0]) is None:
        raise Failed(f"{compiler[0]} is not installed (scripts/install-packages bench)")
    sources = [HERE / source, *HERE.glob("*.hpp")]
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in sources):
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    call([*compiler, "-std=c++17", "-O2", HERE / source, "-o", program, *libraries], timeout_s=300)
