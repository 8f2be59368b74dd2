"""
Is Cross-Fusion Distance the right question?
============================================

The distance compares means, relative to the spread around them. Clouds of equal means are
fused to it, however they differ otherwise. If a difference in spread or shape would
matter to you, ask for it.
"""

import numpy as np
from matplotlib.figure import Figure

import crossfusion as cf

rng = np.random.default_rng(0)
plain = rng.normal(size=(500, 2))
angle = rng.uniform(0, 2 * np.pi, 500)
ring = 1.4 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.15 * rng.normal(
    size=(500, 2)
)
cases = {
    "another place": rng.normal((0.8, 0.0), size=(500, 2)),
    "another spread": 1.8 * rng.normal(size=(500, 2)),
    "another shape": ring,
}

# %%
# Four distances on three differences
# -----------------------------------

names = ("cfd_unbiased", "energy", "mmd", "wasserstein")
figure = Figure(figsize=(7, 2.6), layout="constrained")
for (name, other), axes in zip(cases.items(), figure.subplots(1, 3), strict=True):
    for cloud, colour in ((plain, "#0072b2"), (other, "#d55e00")):
        axes.scatter(*cloud.T, s=3, color=colour, alpha=0.5, linewidths=0)
    axes.set(title=name, aspect="equal", xlim=(-5, 5), ylim=(-5, 5))
    found = "  ".join(
        f"{which} {cf.distance(which, plain, other):.3f}" for which in names
    )
    print(f"{name:<15} {found}")

# %%
# Spread has a test of its own
# ----------------------------

for name, other in cases.items():
    x, labels = np.concatenate([plain, other]), np.repeat([0, 1], 500)
    means, spreads = cf.permutation_test(x, labels), cf.dispersion_test(x, labels)
    print(f"{name:<15} means: p = {means.pvalue:.3f}  spreads: p = {spreads.pvalue:.3f}")

# %%
# The decision
# ------------
# Take the distance when the place is the question, as with a batch effect that shifts
# embeddings; look at the spread beside it; and take a distance that sees shapes, at its
# cost, when shapes are the question.

unseen = [
    name
    for name, other in cases.items()
    if abs(cf.distance("cfd_unbiased", plain, other)) < 0.01
]
print("not to be seen by means:", ", ".join(unseen))

# %%
# :doc:`/distances` lists what each of the others sees and costs, :doc:`/evaluation` how
# to judge them on data of your own.
