"""torchft: of three replicas one is killed while they train; two go on, it comes back, and all end with the same parameters.

    python torchft_replicas.py              # starts the lighthouse and the replicas
"""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torchft import Manager, Optimizer
from torchft._torchft import LighthouseServer

from anyccl.torch.torchft import ProcessGroupAnyccl

REPLICAS, STEPS, KILLED_AT = 3, 12, 4


def train(replica: int, dies: bool) -> None:
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
            print(f"{present[-1]} replicas", flush=True)
        if dies and manager.current_step() == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = model(torch.randn(16, 8)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            manager.allreduce(parameter.grad).wait()
        optimizer.step()
    digest = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy().tobytes().hex()
    print(f"parameters {digest}", flush=True)
    manager.shutdown(wait=False)
    os._exit(0)


def start(replica: int, address: str, dies: bool = False) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-W", "ignore", __file__, str(replica), str(int(dies))],
                            env={**os.environ, "TORCHFT_LIGHTHOUSE": address}, stdout=subprocess.PIPE, text=True)


def main() -> None:
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=5000, heartbeat_timeout_ms=2000)
    address = f"http://127.0.0.1:{lighthouse.address().rpartition(':')[2]}"
    running = [start(replica, address, dies=replica == 1) for replica in range(REPLICAS)]
    assert running[1].wait() == -signal.SIGKILL
    assert running[0].stdout.readline() == "2 replicas\n"
    running[1] = start(1, address)
    texts = [process.communicate()[0].splitlines() for process in running]
    assert all(process.returncode == 0 for process in running), texts
    assert len({lines[-1] for lines in texts}) == 1, texts
    assert texts[0][-2] == "3 replicas", texts
    lighthouse.shutdown()
    print("torchft: one of 3 replicas was killed and came back; all parameters are equal")


if len(sys.argv) > 1:
    train(int(sys.argv[1]), sys.argv[2] == "1")
else:
    main()
