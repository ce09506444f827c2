"""Without collections of garbage while torch is imported: they take a fifth of the time, and find nothing."""

import gc

gc.disable()


def pytest_collection_finish():
    gc.enable()
