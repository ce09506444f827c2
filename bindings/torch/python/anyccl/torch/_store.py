"""Another store for the ranks that are left, where the old one has gone with the process that had it."""

import contextlib as _contextlib
import datetime as _datetime
import socket as _socket

import torch as _torch
import torch.distributed as _dist

_CPU = _torch.device("cpu")
_TEXT_BYTES = 512
_TROUBLE = "trouble: "
_TIME_TO_CONNECT = _datetime.timedelta(seconds=10)
_TIME_TO_END_S = 0.1  # of a process that is dying, and still listens


def is_gone(store) -> bool:
    """Whether nobody is at the address of this store. Of a store that is no TCPStore, nobody knows."""
    store = _without_prefixes(store)
    if not isinstance(store, _dist.TCPStore):
        return False
    try:
        connection = _socket.create_connection((store.host, store.port), _TIME_TO_CONNECT.total_seconds())
    except OSError:
        return True
    with connection:
        connection.settimeout(_TIME_TO_END_S)
        try:
            return not connection.recv(1)  # a store says nothing first
        except _socket.timeout:
            return False
        except OSError:
            return True


def replaced_if_gone(store, backend):
    """`store`, or a new one at rank 0 of this backend if `store` is gone for any rank. Called by all its ranks."""
    group = _dist.ProcessGroup(_dist.HashStore(), backend.rank(), backend.size())
    group._register_backend(_CPU, _dist.ProcessGroup.BackendType.GLOO, backend)
    here = _address_on_the_way_to(_without_prefixes(store).host) if is_gone(store) else ""
    addresses = _exchange(group, here)
    if not any(addresses):
        return store
    is_first = backend.rank() == 0
    made, said = _start(addresses, store.timeout) if is_first else (None, "")
    place = _exchange(group, said)[0]
    if not is_first and not place.startswith(_TROUBLE):
        made, said = _connect(place, store.timeout)
    for rank, text in enumerate(_exchange(group, said)):
        if text.startswith(_TROUBLE):
            raise _dist.DistBackendError(
                f"anyccl: carry_on: the store of the group is gone, and rank {rank} of those that are left cannot have "
                f"another one at rank 0: {text[len(_TROUBLE):]}")
    return made


def _without_prefixes(store):
    while isinstance(store, _dist.PrefixStore):
        store = store.underlying_store
    return store


def _address_on_the_way_to(host: str) -> str:
    """An address of this host, by which that one can reach it: of the interface that leads there."""
    with _contextlib.suppress(OSError):
        for family, kind, _, _, address in _socket.getaddrinfo(host, 1, type=_socket.SOCK_DGRAM):
            with _contextlib.suppress(OSError), _socket.socket(family, kind) as route:  # which sends nothing
                route.connect(address)
                return route.getsockname()[0]
    return "127.0.0.1"


def _start(addresses, timeout):
    others = [address for address in addresses if address and not address.startswith("127.") and address != "::1"]
    host = _address_on_the_way_to(others[-1]) if others else "127.0.0.1"
    try:
        store = _dist.TCPStore(host, 0, is_master=True, timeout=timeout, wait_for_workers=False)
    except RuntimeError as error:
        return None, f"{_TROUBLE}{host}: {_first_line(error)}"
    return store, f"{host} {store.port}"


def _connect(place, timeout):
    host, port = place.rsplit(" ", 1)
    try:
        store = _dist.TCPStore(host, int(port), is_master=False, timeout=_TIME_TO_CONNECT)
    except RuntimeError as error:
        return None, f"{_TROUBLE}{host}, port {port}: {_first_line(error)}"
    store.set_timeout(timeout)
    return store, ""


def _first_line(error) -> str:
    return str(error).partition("\n")[0]


def _exchange(group, text: str):
    """What each rank gives."""
    mine = _torch.zeros(_TEXT_BYTES, dtype=_torch.uint8)
    data = text.encode()[:_TEXT_BYTES]
    mine[:len(data)] = _torch.tensor(list(data), dtype=_torch.uint8)
    everyones = [_torch.zeros_like(mine) for _ in range(group.size())]
    group.allgather([everyones], [mine]).wait()
    return [bytes(one.tolist()).rstrip(b"\0").decode(errors="replace") for one in everyones]
