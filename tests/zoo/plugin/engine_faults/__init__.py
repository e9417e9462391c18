"""A plugin for vLLM's CPU backend that breaks one thing at a time while it serves.

Importable from PYTHONPATH alone: the ``dist-info`` folder beside this package announces it. It
does nothing unless ENGINE_FAULT_FILE names a file (see `engine_faults.active`).
"""
