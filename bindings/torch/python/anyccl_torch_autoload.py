"""What torch calls at the end of `import torch` (entry point group torch.backends).

A module of its own, with nothing at its top level: torch may come here while anyccl.torch is itself being
imported. ANYCCL_TORCH_AUTOLOAD=0 switches it off."""


def load() -> None:
    import os

    if os.environ.get("ANYCCL_TORCH_AUTOLOAD", "1") != "0":
        import anyccl.torch  # noqa: F401  registers itself
