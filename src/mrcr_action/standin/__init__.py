"""The stand-in server: OpenAI-compatible, shaped like vLLM's, with faults to switch on.

It is no model: it finds the answer of an MRCR conversation by parsing it. `mrcr demo` and the
tests start it as a process of its own, ``python -m mrcr_action.standin``::

    __main__    the command line and the process's life
    connection  bytes to requests, steps to bytes
    routes      which request gets which answer
    chat        the shape of a chat completion, whole or streamed
    reader      the answer an MRCR conversation asks for
    template    what the chat template takes, and what it adds
    tokens      how this server counts tokens
    faults      what can be made to go wrong, and when
    metrics     what /metrics tells
    steps       what an answer is made of

It imports nothing but the standard library and h11, so that it starts in a fraction of a second.
"""
