"""A stranger's array: DLPack of any type and device, with and without versions, over NumPy's memory."""

import ctypes

BFLOAT, COMPLEX, BOOL, FLOAT8_E4M3FN, FLOAT8_E5M2 = 4, 5, 6, 10, 12
READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype = ctypes.c_void_p
_get.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """`bits` is a NumPy array of unsigned integers as wide as the elements."""

    def __init__(self, bits, code, lanes=1, device=(1, 0), flags=None, major=1):
        self.bits = bits
        self.device = device
        self._shape = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        self._strides = (ctypes.c_int64 * bits.ndim)(*(s // bits.itemsize for s in bits.strides))
        kind = (code, bits.itemsize * 8, lanes)
        tensor = _Tensor(bits.ctypes.data, *device, bits.ndim, *kind, self._shape, self._strides)
        self._old = flags is None
        self._managed = _Managed(tensor) if self._old else _Versioned(major, 0, None, None, flags, tensor)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **wanted):
        if self._old and wanted:
            raise TypeError("from before versions")
        name = b"dltensor" if self._old else b"dltensor_versioned"
        return _new(ctypes.addressof(self._managed), name, None)


class Imported:
    """What from_dlpack of the stranger's library made."""

    def __init__(self, exporter):
        self._capsule = exporter.__dlpack__(max_version=(1, 0))
        tensor = _Versioned.from_address(_get(self._capsule, b"dltensor_versioned")).tensor
        self.code, self.bits = tensor.code, tensor.bits
        self.shape = tuple(tensor.shape[: tensor.ndim])
        count = 1
        for extent in self.shape:
            count *= extent
        self.bytes = ctypes.string_at(tensor.data, count * tensor.bits // 8)


class LibraryTensor(Tensor):
    """Of a library that can take arrays over."""

    def __array_namespace__(self):
        class namespace:
            from_dlpack = Imported

        return namespace
