"""Bad input and faults, anew in each run: `python -m tests.stress --minutes 10`, or `make stress`.

Each part provokes one kind of trouble, in real processes where a process is what fails, until its share of the time is
over. A case is drawn from the seed, the part and its number, so a finding names the command that repeats it. Whatever
happens, a right result, one line that says what is wrong, and whole files are all that may come of it.
"""
