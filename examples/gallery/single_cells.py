"""
Which integration of my cells should go downstream?
===================================================

Cells of several donors were sequenced in three batches, and integrated in several ways.
An integration is to bring batches together and to keep cell types apart: two distances,
of which neither alone decides.
"""

import anndata
import numpy as np
import pandas as pd

import crossfusion as cf
import crossfusion.anndata

rng = np.random.default_rng(1)
donor = np.arange(1800) % 12
batch = donor % 3
other = rng.random(1800) < 0.25 * batch  # batches differ in their mix of types
kind = np.where(other, 0, rng.integers(0, 4, 1800))
x = rng.normal(size=(1800, 20)) + 0.3 * rng.normal(size=(12, 20))[donor]
x += 1.2 * rng.normal(size=(4, 20))[kind] + 0.8 * rng.normal(size=(3, 20))[batch]

obs = pd.DataFrame(
    {"batch": batch, "type": np.array(["B", "T", "NK", "mono"])[kind], "donor": donor}
)
adata = anndata.AnnData(obs=obs.set_index(obs.index.astype(str)), obsm={"X_pca": x})
for name in ("center", "standardize", "combat"):  # yours would be X_scVI, X_harmony, ...
    adata.obsm[f"X_{name}"] = cf.correct(x, batch, name)

# %%
# The board
# ---------
# Donors are what is independent, so intervals count donors and not cells.

board = crossfusion.anndata.cfd(
    adata,
    batch_key="batch",
    label_key="type",
    donor_key="donor",
    embedding_obsm_keys=list(adata.obsm),
)
columns = ["embedding", "standing", "batch", "biology"]
print(board.to_frame()[columns].round(3))
figure = board.plot()

# %%
# The decision
# ------------
# An embedding is on the Pareto front if no other one is clearly better on one axis
# without being clearly worse on the other. One that lost a cell type is never on it, and
# remarks say what else to know.

print("on the front:", ", ".join(board.front))
print("\n".join(board.remarks()))

# %%
# These corrections center the very batches that they are judged by, as the caution says.
# Judge yours on cells that it was not fitted to, where it can be applied to others. And
# two clouds of one mean count as fused, whatever their shapes. Look at neighbours too
# before you decide: :doc:`/single_cells` says what each kind of metric sees.
