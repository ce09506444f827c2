"""What torch calls at the end of `import torch` (entry point group torch.backends).

A module of its own, with nothing at its top level: torch may come here while anyccl.torch is itself being
imported. ANYCCL_TORCH_AUTOLOAD=0 switches it off."""


def load() -> None:
    """Registers the backend "anyccl". What is wrong with it is a warning: torch works without."""
    import os
    import warnings

    if os.environ.get("ANYCCL_TORCH_AUTOLOAD", "1") == "0":
        return
    try:
        import anyccl.torch  # noqa: F401  registers itself
    except Exception as error:  # whatever it is, `import torch` would fail with it
        warnings.warn(f"the backend anyccl was not loaded: {error}", stacklevel=2)
