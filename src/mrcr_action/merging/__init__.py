"""Parts of one plan, put together again: what may be (`mergeable`), and what comes of it."""
