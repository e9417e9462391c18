"""A language model whose hand-set weights answer MRCR prompts word for word.

It gives the gate a server test with a known right answer: a healthy vLLM serving it scores
exactly 1, so any lower score is the server's doing. ``python -m mrcr_action.probe DIR`` writes
it; docs/probe.md explains it. Nothing here is trained, downloaded or drawn at random.

=============  ==================================================================
vocabulary     one token a byte; the tokenizer's files
wording        the fixed phrases of an MRCR conversation, and the distances they imply
layout         which dimensions of the residual stream and which RoPE pairs hold what
codes          the ±1 codes that tokens, phrases, identities and counts are told apart by
attention      the kinds of attention head
mlp            the kinds of MLP unit
starts         heads that weigh two keys of known scores
layer, layers  the 21 layers, each a few of those
gauges         the layer that high sensitivity adds
qk_norm        the norms of queries and keys that a Qwen3 has
variant        which of its forms the model is written in
checkpoint     the file of weights
build          all weights by name, and the other files that vLLM loads
collisions     rows that a hash of few bits misreads
reference      the forward pass in numpy, for tests and for looking inside
faults         imprecise servers for it
positions      how clearly positions are told apart in long contexts
=============  ==================================================================
"""

from mrcr_action.probe.build import build
from mrcr_action.probe.checkpoint import Dtype
from mrcr_action.probe.variant import Variant

__all__ = ["Dtype", "Variant", "build"]
