"""Renderings of a `Result`, each its own module; `files` writes those that are files."""
