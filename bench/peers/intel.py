"""Intel MPI and oneCCL from PyPI, in an environment of their own next to the programs that measure them."""
import shutil
import sys

from process import Failed, call

# --no-deps: they ask for libfabric, which is for networks and not on PyPI, and for SYCL, which is for GPUs.
PACKAGES = ("impi-rt==2021.19.0", "impi-devel==2021.19.0", "oneccl-cpu-devel==2022.2.0", "intel-cmplr-lib-rt==2026.2.0")


def install(folder):
    """Installs missing packages; returns the folder with bin, include and lib."""
    root = folder / "venv"
    mark = root / "installed"
    if mark.exists() and mark.read_text() == "\n".join(PACKAGES):
        return root
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    print("installing Intel MPI and oneCCL into", root, file=sys.stderr, flush=True)
    try:
        call([sys.executable, "-m", "venv", root], timeout_s=120)
        call([root / "bin/pip", "install", "--quiet", "--no-input", "--no-deps", *PACKAGES], timeout_s=300)
    except Failed as why:
        raise Failed(f"not on this machine: {why}") from None
    mark.write_text("\n".join(PACKAGES))
    return root
