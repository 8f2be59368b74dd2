"""
Do I need a cluster, and what would travel?
===========================================

The rows lie in a folder of Parquet files that many machines can see. One machine can read
them, several may be faster. Here both do, on a small folder, with a cluster of Dask on
this machine.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import crossfusion as cf

temporary = tempfile.TemporaryDirectory()
lake = Path(temporary.name)
rng = np.random.default_rng(0)
effect = 0.3 * rng.normal(size=(6, 128))
for part in range(8):
    site = rng.integers(0, 6, 2500)
    x = (rng.normal(size=(2500, 128)) + effect[site]).astype("float32")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 128)
    pq.write_table(
        pa.table({"site": [f"site {k}" for k in site], "vector": vectors}),
        lake / f"{part}.parquet",
    )

# %%
# Threads of this machine
# -----------------------

here = cf.summarize(lake, by="site")

# %%
# A cluster
# ---------
# A scheduler and two workers, here as threads; ``Client("tcp://scheduler:8786")`` would
# be yours. Workers read the files and reduce them; what they send is moments.

with (
    LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as workers,
    Client(workers) as client,
):
    there = cf.summarize(lake, by="site", engine=client)

same = np.allclose(here.moments.mean, there.moments.mean, rtol=1e-12)
read = sum(file.stat().st_size for file in lake.iterdir())
kept = 16 * len(there) * there.dim
print(f"the same summary: {same}; {read / 1e6:.1f} MB read, {kept / 1e3:.1f} kB kept")
figure = there.pairwise("site").plot()

# %%
# Spark
# -----
# With a session the same line is ``cf.summarize("s3a://bucket/lake", by="site",
# vectors="vector", engine="spark")``, or ``cf.summarize(frame, by="site")`` for a Spark
# DataFrame.

# %%
# The decision
# ------------
# The work is one read. Divide the bytes by what one machine reads in a second; where that
# is short enough, or where the disk and not the processor is the limit, threads do.

terabytes, rate, patience = 4.0, 1.0, 600.0  # yours: what to read, in GB/s, in seconds
needed = int(np.ceil(terabytes * 1e3 / rate / patience))
print(
    "one machine will do"
    if needed <= 1
    else f"take a cluster: some {needed} such machines for {patience:.0f} s"
)

# %%
# :doc:`/scale` has measured rates and when many groups make moments the larger part,
# :doc:`/engines` what happens when a worker dies.
