"""
May two sets of embeddings be pooled?
=====================================

You have embeddings of last year's images and of this year's. A model is to be trained on
both. Are they one population, or are the years apart, and by how much?
"""

import numpy as np

import crossfusion as cf

rng = np.random.default_rng(0)
last = rng.normal(size=(800, 128))
this = rng.normal(size=(600, 128))
this[:, :5] += 0.6  # a change that we pretend not to know

# %%
# The distance
# ------------
# The score is the share of the fused cloud's variance that lies within the two sets, and
# the distance is its negative logarithm: 0 where the means coincide. ``level`` asks for
# an interval, which belongs to ``unbiased``.

found = cf.cfd(last, this, level=0.95)
print(found)

# %%
# Chance?
# -------
# Labels dealt out anew separate the sets as far in the given share of cases.

labels = np.repeat(["last", "this"], [800, 600])
x = np.concatenate([last, this])
print(f"p = {cf.permutation_test(x, labels).pvalue}")

# %%
# Which features?
# ---------------
# Real does not mean large. The variance between the sets splits exactly over features, so
# that what is behind it can be looked up.

summary = cf.summarize(x, by={"year": labels})
figure = summary.attribution("year").plot(8)

# %%
# The decision
# ------------
# Set the margin before you look: here, up to one per cent of the variance between the
# years does no harm. They may be pooled if the whole interval lies below it, not merely
# if a test finds nothing.

margin = -np.log(0.99)
_, high = found.interval
print(f"at most {high:.4f}, and {margin:.4f} would do:")
print("pool them" if high < margin else "do not pool them as they are")

# %%
# Go on with intervals and units in :doc:`/inference`, and with the same on the command
# line, ``crossfusion compare A.npy B.npy --level 0.95 --permutations 999``, in
# :doc:`/cli`.
