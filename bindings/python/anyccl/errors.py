"""The exceptions. Their messages are the library's: what, where, which rank, and the system's reason."""


class Error(RuntimeError):
    """The base of the library's errors."""

    code: int = 0
    """The value of anycclResult_t."""


class DeviceError(Error):
    """A function of a device's driver failed, which calls of C and C++ programs use."""

    code = 1


class SystemFailure(Error):
    """A system call failed."""

    code = 2


class InternalError(Error):
    """A bug in anyccl: please report it."""

    code = 3


class InvalidArgument(Error, ValueError):
    """An argument is invalid. Nothing was started."""

    code = 4


class InvalidUsage(Error):
    """The calls do not match: other ranks called something else, or it is too late for this one."""

    code = 5


class RemoteError(Error):
    """A peer failed or went away; the message names its rank."""

    code = 6


class InProgress(Error, TimeoutError):
    """What was asked for is not complete yet, as after a wait with a time of its own; it goes on."""

    code = 7


class Unsupported(Error):
    """The call is valid, but nothing here can do it."""

    code = 8


class Timeout(Error, TimeoutError):
    """A time limit has passed: of an operation (ANYCCL_OP_TIMEOUT), or of creation (ANYCCL_TIMEOUT)."""

    code = 9


class Aborted(Error):
    """The communicator was aborted, here or by a peer."""

    code = 10


by_code: dict[int, type[Error]] = {
    kind.code: kind
    for kind in (
        DeviceError,
        SystemFailure,
        InternalError,
        InvalidArgument,
        InvalidUsage,
        RemoteError,
        InProgress,
        Unsupported,
        Timeout,
        Aborted,
    )
}
