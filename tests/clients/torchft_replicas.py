"""torchft: of three replicas one is killed while they train; two go on, it comes back, and all end with the same parameters."""

import multiprocessing
import os
import signal
from datetime import timedelta

import torch
import torch._dynamo  # noqa: F401  optimizers import it: once, and not in every replica
import torch.distributed as dist
from torchft import Manager, Optimizer
from torchft._torchft import LighthouseServer

from anyccl.torch.torchft import ProcessGroupAnyccl

REPLICAS, STEPS, KILLED_AT = 3, 12, 4


def train(replica: int, dies: bool, say) -> None:
    torch.manual_seed(replica)  # different: the first quorum makes them equal
    model = torch.nn.Linear(8, 3)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupAnyccl(timeout=timedelta(seconds=20)), min_replica_size=1, use_async_quorum=False,
        load_state_dict=model.load_state_dict, state_dict=model.state_dict, replica_id=f"replica_{replica}_",
        store_addr="127.0.0.1", store_port=store.port, rank=0, world_size=1, hostname="127.0.0.1",
        timeout=timedelta(seconds=20))
    optimizer = Optimizer(manager, torch.optim.SGD(model.parameters(), lr=0.1))
    present = [REPLICAS]
    # The replica that is started again may take long: the others take steps until it has joined.
    while manager.current_step() < STEPS or present[-1] < REPLICAS:
        optimizer.zero_grad()  # the quorum of this step
        if manager.num_participants() != present[-1]:
            present.append(manager.num_participants())
            say(f"{present[-1]} replicas")
        if dies and manager.current_step() == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = model(torch.randn(16, 8)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()
        optimizer.step()
    digest = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy().tobytes().hex()
    say(f"parameters {digest}")
    manager.shutdown(wait=False)
    os._exit(0)


def be_replica(replica: int, dies: bool, pipe) -> None:
    os.environ["TORCHFT_LIGHTHOUSE"] = pipe.recv()
    train(replica, dies, pipe.send)


def fork(replica: int, dies: bool = False):
    """A process that trains once it is told where the lighthouse is, and the pipe to it. It has no threads of this one yet."""
    pipe, its_pipe = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=be_replica, args=(replica, dies, its_pipe), daemon=True)
    process.start()
    its_pipe.close()
    return process, pipe


def lines_of(pipe) -> list[str]:
    lines = [pipe.recv()]
    while not lines[-1].startswith("parameters"):
        lines.append(pipe.recv())
    return lines


def main() -> None:
    replicas = [fork(replica, dies=replica == 1) for replica in range(REPLICAS)]
    comes_back = fork(1)
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=5000, heartbeat_timeout_ms=2000)
    address = f"http://127.0.0.1:{lighthouse.address().rpartition(':')[2]}"
    for _, pipe in replicas:
        pipe.send(address)
    replicas[1][0].join()
    assert replicas[1][0].exitcode == -signal.SIGKILL
    assert replicas[0][1].recv() == "2 replicas"
    comes_back[1].send(address)
    replicas[1] = comes_back
    texts = [lines_of(pipe) for _, pipe in replicas]
    for process, _ in replicas:
        process.join()
    assert all(process.exitcode == 0 for process, _ in replicas), texts
    assert len({lines[-1] for lines in texts}) == 1, texts
    assert texts[0][-2] == "3 replicas", texts
    lighthouse.shutdown()
    print("torchft: one of 3 replicas was killed and came back; all parameters are equal")


main()
