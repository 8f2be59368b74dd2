"""Broken files by the thousand: run as `python -m tests.fuzz FORMAT COUNT SEED`, in a process that may die of it.

Each case writes files, breaks one, and reads it. A summary of finite numbers is right, and so is one of our errors in
one line; anything else is printed as a finding, and makes the exit code 1.
"""
