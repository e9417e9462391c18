"""A gate for long-context serving: OpenAI's MRCR benchmark as a command and a GitHub Action."""

__version__ = "0.1.0"
