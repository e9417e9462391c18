"""The stand-in server: OpenAI-compatible, shaped like vLLM's, with faults to switch on.

It is no model: it finds the answer of an MRCR conversation by parsing it. `mrcr demo` and the
tests start it as a process of its own, ``python -m mrcr_action.standin``::

    __main__    the command line and the process's life
    connection  bytes to requests, steps to bytes
    routes      which request gets which answer
    body        what a request's body asks for
    chat        what is said, and the shape of a chat completion, whole or streamed
    refusals    the shape of an error
    reader      the answer an MRCR conversation asks for
    template    what the chat template takes, and what it adds
    tokens      how this server counts tokens
    prefix_cache  which blocks of which prompts are known
    faults      what can be made to go wrong
    when        which questions a fault hits
    slips       the faults that wait for something: a hit of the cache, a crowd, their chance
    draws       draws that come out the same each time
    metrics     what /metrics tells
    steps       what an answer is made of

It imports nothing but the standard library and h11, so that it starts in a fraction of a second.
"""
