"""Thresholds that a healthy server seldom misses, made from what it scores again and again."""
