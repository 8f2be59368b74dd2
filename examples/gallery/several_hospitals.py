"""
Can hospitals be compared that share no rows?
=============================================

Three hospitals want to train one model. Whether their embeddings agree, given the tissue,
has to be known first; but no hospital may send a row.
"""

import tempfile
from pathlib import Path

import numpy as np

import crossfusion as cf

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
offset = {"north": 0.0, "south": 0.05, "east": 0.5}
mixes = {"north": 0.2, "south": 0.7, "east": 0.5}

# %%
# At each hospital
# ----------------
# A summary holds counts, means and variances of groups: 16 bytes for a group and feature.
# ``min_count`` keeps groups out that are too small to share, tags say how rows were made.

rows = []
for k, (site, shift) in enumerate(offset.items()):
    rng = np.random.default_rng(k)
    tissue = np.where(rng.random(2000) < mixes[site], "tumour", "stroma")
    x = rng.normal(shift, size=(2000, 64)) + 1.5 * (tissue == "tumour")[:, None]
    by = {"site": np.repeat(site, 2000), "tissue": tissue}
    summary = cf.summarize(x, by=by, min_count=20, tags={"encoder": "virchow"})
    summary.write(folder / f"{site}.parquet")
    rows.append((x, by))

# %%
# At the coordinator
# ------------------
# Files that do not fit together, or that hold the same rows twice, are refused. The sum
# answers as all rows would.

together = cf.merge_summaries(sorted(folder.glob("*.parquet")))
print(together)
pairs = together.pairwise("site", given="tissue")
figure = pairs.plot("unbiased")

# %%
# It is not an approximation. With all rows in one place, which only a made-up example
# has:

x = np.concatenate([x for x, _ in rows])
site, tissue = (np.concatenate([by[name] for _, by in rows]) for name in by)
print(f"{cf.cfd(x, labels=site, given=tissue).distance:.12f} from rows")
print(f"{together.cfd('site', given='tissue').distance:.12f} from files")

# %%
# The decision
# ------------
# Hospitals go into one training set where less than one per cent of the variance, given
# the tissue, lies between them.

close = pairs.unbiased < -np.log(0.99)
for name, near in zip(pairs.labels, close, strict=True):
    others = [pairs.labels[k] for k in np.flatnonzero(near) if pairs.labels[k] != name]
    print(
        f"{name}:",
        f"with {', '.join(others)}" if others else "correct it first, or apart",
    )

# %%
# :doc:`/several_sites` has the same as commands, new rows that come in later, and what a
# summary reveals.
