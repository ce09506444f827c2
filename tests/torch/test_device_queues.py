"""Calls in queues of devices: streams wait for them, and the program does not. The other tests of tensors of a device run
with them, too (CMakeLists.txt)."""

import datetime
import os
import re
import signal

import pytest
import torch
import torch.distributed as dist
from on_device import run_on_devices, simulated_device
from ranks import limit_operations, tell, wait_for

os.environ["ANYCCL_DEVICE_QUEUES"] = "1"


def test_the_program_goes_on_and_its_stream_waits(tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(1, device=device))
        for stream in (torch.Stream(device), torch.accelerator.current_stream()):
            with stream:
                x, everyone = torch.zeros(1000, device=device), torch.zeros(2000, device=device)
                torch.accelerator.synchronize()
                with simulated_device.held():
                    x.fill_(rank + 1)
                    dist.all_reduce(x)
                    y = x.clone()
                    work = dist.all_gather_single(everyone, y.fill_(rank + 3), async_op=True)
                    assert work.wait() and not work.is_completed()
                    z = everyone.clone()
                    everyone.zero_()
                assert x.cpu().eq(3).all() and z.cpu().view(2, 1000)[:, 999].tolist() == [3, 4]
                assert work.wait(datetime.timedelta(seconds=30)) and work.is_completed()  # the program waits
    run_on_devices(2, tmp_path, body)


def test_a_stream_other_than_that_of_the_call_waits_for_its_work(tmp_path):
    def body(rank, device):
        x = torch.full((1000,), rank + 1.0, device=device)
        work = dist.all_reduce(x, async_op=True)
        with torch.Stream(device):
            work.wait()
            y = x + 1
            assert y.cpu().eq(4).all()
    run_on_devices(2, tmp_path, body)


@pytest.mark.parametrize("strided", [False, True])
def test_a_wait_in_another_stream_keeps_the_tensors_of_the_call(strided, tmp_path):
    """The stream of the call may use their memory again, and does not wait."""
    def body(rank, device):
        dist.all_reduce(torch.ones(1, device=device))
        result, mine, other = torch.zeros(2000, device=device), torch.Stream(device), torch.Stream(device)
        torch.accelerator.synchronize()
        with simulated_device.held():
            with mine:
                x = torch.full((20, 50), rank + 1.0, device=device)
                x = x.t() if strided else x
                work = dist.all_gather_single(result.view(2 * x.shape[0], x.shape[1]), x, async_op=True)
            with other:
                work.wait()
            x = x if strided else None  # then a copy of it is free
            with mine:
                later = [torch.full((20, 50), 77.0, device=device) for _ in range(4)]
        torch.accelerator.synchronize()
        assert result.cpu().unique().tolist() == [1, 2] and len(later) == 4
    run_on_devices(2, tmp_path, body)


def test_a_signal_ends_the_wait_for_the_first_collective_which_keeps_its_place(tmp_path):
    def body(rank, device):
        x = torch.full((3,), rank + 1.0, device=device)
        if rank == 0:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                dist.all_reduce(x)
            tell("it has ended")
        else:
            wait_for("it has ended")
        dist.all_reduce(x)
        assert x.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


def test_what_the_variable_says_later_changes_nothing(tmp_path):
    def body(rank, device):
        if rank == 0:
            os.environ["ANYCCL_DEVICE_QUEUES"] = "0"
        x = torch.full((3,), rank + 1.0, device=device)
        dist.all_reduce(x)
        assert x.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


def test_a_work_that_is_complete_does_not_tell_of_later_calls(tmp_path):
    def body(rank, device):
        x = torch.ones(3, device=device)
        dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True)
        later = dist.all_reduce(x, async_op=True)
        while not later.is_completed():  # and so is the one before it, which nobody has asked
            pass
        other = dist.all_reduce(x, async_op=True, op=[dist.ReduceOp.MAX, dist.ReduceOp.SUM][rank])
        with pytest.raises(dist.DistBackendError):
            other.wait(datetime.timedelta(seconds=30))
        assert work.wait()
    run_on_devices(2, tmp_path, body)


def test_tensors_that_are_not_contiguous(tmp_path):
    def body(rank, device):
        for is_async in (False, True):
            x = torch.zeros(2, 500, device=device).t()
            x.fill_(rank + 1)
            work = dist.all_reduce(x, async_op=is_async)
            if is_async:
                work.wait()
            y = x * 2
            x.fill_(-1)
            assert y.cpu().eq(6).all()
    run_on_devices(2, tmp_path, body)


def test_messages_are_in_queues_after_the_first_collective(tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(1, device=device))
        x, got = torch.zeros(1000, device=device), torch.zeros(1000, device=device)
        torch.accelerator.synchronize()
        with simulated_device.held():
            x.fill_(rank + 1)
            if rank == 0:
                dist.send(x, 1)
                x.zero_()
            else:
                dist.recv(got, 0)
                got = got.clone()
        assert x.cpu().unique().tolist() == [2 * rank] and got.cpu().unique().tolist() == [rank]
    run_on_devices(2, tmp_path, body)


def test_callbacks_of_futures_are_put_into_streams(tmp_path):
    def body(rank, device):
        x = torch.zeros(1000, device=device)
        dist.all_reduce(x)
        torch.accelerator.synchronize()
        with simulated_device.held():
            x.fill_(rank + 1)
            future = dist.all_reduce(x, async_op=True).get_future()
            copied = future.then(lambda done: done.value()[0].clone())
            again = copied.then(lambda one: dist.all_reduce(one.value(), async_op=True).get_future().wait()[0])
            assert future.done() and copied.done() and again.done()
            result = again.wait().clone()
        assert x.cpu().eq(3).all() and result.cpu().eq(6).all()
    run_on_devices(2, tmp_path, body)


def test_memory_is_used_again_while_calls_that_use_it_are_in_queues(tmp_path):
    """It comes back at wait(), not when the call is over, so it does not add up."""
    def body(rank, device):
        results, places = [], set()
        dist.all_reduce(torch.ones(1, device=device))
        torch.accelerator.synchronize()
        with simulated_device.held():
            for round_ in range(20):
                x = torch.full((1000,), rank + 10.0 * round_, device=device)
                places.add(x.data_ptr())
                results.append(torch.empty(2, 1000, device=device))
                dist.all_gather_single(results[-1], x, async_op=True).wait()
                del x
        for round_, result in enumerate(results):
            assert result.cpu()[:, 999].tolist() == [10.0 * round_, 10.0 * round_ + 1]
        assert len(places) < 3
    run_on_devices(2, tmp_path, body)


def test_coalesced_calls_and_messages_beside_calls_in_queues(tmp_path):
    def body(rank, device):
        other = 1 - rank
        for round_ in range(5):
            xs = [torch.full((n,), rank + 1.0, device=device) for n in (1, 100, 300000)]
            with dist._coalescing_manager(device=device, async_ops=True) as manager:
                for x in xs:
                    dist.all_reduce(x)
            manager.wait()
            got = torch.empty(100, device=device)
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, xs[1], other), dist.P2POp(dist.irecv, got, other)]):
                work.wait()
            average = got * (rank + 1)
            dist.all_reduce(average, op=dist.ReduceOp.AVG)
            assert average.cpu().eq(4.5).all() and xs[2].cpu().eq(3).all()
    run_on_devices(2, tmp_path, body)


@pytest.mark.parametrize("setting, why", [
    (("SIMULATED_CUDA_NO_MEMOPS", "1"), "lacks queues that wait for words"),
    (("SIMULATED_CUDA_FAIL", "cuMemHostRegister:1"), "cuMemHostRegister"),
], ids=["no_words", "no_pins"])
def test_a_rank_whose_device_has_no_such_queues(setting, why, tmp_path):
    """All go by copies, and say why."""
    def body(rank, device):
        x = torch.full((3,), rank + 1.0, device=device)
        with open(tmp_path / f"words_of_{rank}", "w+") as words:
            os.dup2(words.fileno(), 2)
            dist.all_reduce(x)
            words.seek(0)
            assert re.search(f"go by copies to the host: .*rank 0.*{why}", words.read())
        assert x.cpu().eq(3).all()
    run_on_devices(2, tmp_path, body, settings_of_rank_0=[setting])


def test_a_rank_with_a_tensor_on_the_cpu(tmp_path):
    def body(rank, device):
        dist.all_reduce(torch.ones(3, device=device))
        with pytest.raises(dist.DistBackendError, match="with device queues, memory of a device on one of the two"):
            x = torch.ones(3, device=device if rank == 0 else "cpu")
            for _ in range(1000):
                dist.all_reduce(x)
                torch.accelerator.synchronize()
    run_on_devices(2, tmp_path, body)


def test_a_rank_that_is_killed_is_named_by_later_calls(tmp_path):
    """Streams go on."""
    def body(rank, device):
        x = torch.ones(100, device=device)
        dist.all_reduce(x)
        torch.accelerator.synchronize()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        with pytest.raises(dist.DistBackendError, match="rank 1.*Connection closed by peer"):
            for is_async in range(1000):
                work = dist.all_reduce(x, async_op=is_async % 2 == 1)
                if work is not None:
                    work.wait()
                torch.accelerator.synchronize()
    assert run_on_devices(2, tmp_path, body)[1] == -signal.SIGKILL


def test_a_call_that_differs_fails_on_all_ranks(tmp_path):
    def body(rank, device):
        x = torch.ones(3, device=device)
        dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True, op=[dist.ReduceOp.MAX, dist.ReduceOp.SUM][rank])
        with pytest.raises(dist.DistBackendError, match="anyccl: .*[Mm]ax"):
            work.get_future().wait()
            torch.accelerator.synchronize()
            dist.all_reduce(x)
    run_on_devices(2, tmp_path, body)


def test_a_rank_that_does_not_come(tmp_path):
    def body(rank, device):
        x = torch.ones(3, device=device)
        dist.all_reduce(x)
        torch.accelerator.synchronize()
        limit_operations(1)
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="[Tt]imed out"):
                dist.all_reduce(x)
                torch.accelerator.synchronize()
                dist.all_reduce(x)
            tell("it has timed out")
        else:
            wait_for("it has timed out")
    run_on_devices(2, tmp_path, body)
