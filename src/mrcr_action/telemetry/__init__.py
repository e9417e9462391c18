"""What a run cost, and how its server fared: counters, samples while asking, latencies, GPUs.

Nothing here decides a verdict, and nothing here may end a run: what cannot be read is unknown.
"""
