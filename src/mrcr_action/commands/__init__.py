"""What each command of ``mrcr`` does, once its arguments are read."""
