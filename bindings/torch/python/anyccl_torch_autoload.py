"""Torch's hook at the end of `import torch` (entry point group torch.backends).

A module of its own, with nothing at its top level: torch may call it while anyccl.torch is itself being
imported. ANYCCL_TORCH_AUTOLOAD=0 switches it off."""


def load() -> None:
    """Registers the backend "anyccl". A failure is only a warning: torch works without it."""
    import os
    import warnings

    if os.environ.get("ANYCCL_TORCH_AUTOLOAD", "1") == "0":
        return
    try:
        import anyccl.torch  # noqa: F401  registers itself
    except Exception as error:  # whatever it is, `import torch` would fail with it
        warnings.warn(f"the backend anyccl was not loaded: {error}", stacklevel=2)
