"""
Which stain normaliser should the lab switch on?
================================================

A lab scans slides on two scanners, and the second one gets more of the tumours. Three
stain normalisers are on offer. Which brings the scanners together without wiping out the
tissue?

The embeddings here are made up, a table for each normaliser. :doc:`/pathology_encoding`
makes such tables from images.
"""

import numpy as np

import crossfusion as cf

rng = np.random.default_rng(0)
slide = np.repeat(np.arange(24), 60)
scanner = np.array(["Aperio", "Hamamatsu"])[slide % 2]
tumour = rng.random(len(slide)) < np.where(scanner == "Aperio", 0.3, 0.6)
tissue = np.where(tumour, "tumour", "stroma")

colour = np.outer(scanner == "Hamamatsu", 0.5 * rng.normal(size=32))
biology = np.outer(tumour, rng.normal(size=32))
noise = rng.normal(size=(len(slide), 32)) + 0.3 * rng.normal(size=(24, 32))[slide]
versions = {
    "none": noise + biology + colour,
    "Macenko": noise + biology + 0.3 * colour,
    "Vahadane": noise + 0.95 * biology + 0.6 * colour,
    "histogram": noise + 0.4 * biology + 0.3 * colour,
}

# %%
# As the tiles come
# -----------------
# The plain distance also counts that the scanners see different tissue. Given the tissue,
# that is left out. Slides, not tiles, are what is independent: they are the units.

by = {"scanner": scanner, "tissue": tissue, "slide": slide}
tables = {name: cf.summarize(x, by=by) for name, x in versions.items()}
raw = tables["none"]
for given in (None, "tissue"):
    found = raw.cfd("scanner", given=given, units="slide", level=0.95)
    low, high = found.interval
    print(f"given {given}: {found.unbiased:.3f}, {low:.3f} to {high:.3f}")

# %%
# The normalisers, side by side
# -----------------------------
# All see the same slides, so that differences from ``none`` are known better than the
# distances themselves. To the left the scanners are fused, at the top the tissues are
# apart.

methods = cf.compare_corrections(tables, between="scanner", given="tissue", units="slide")
columns = ["method", "standing", "batch", "batch_lower", "batch_upper", "biology"]
print(methods.to_frame()[columns].round(4))
figure = methods.plot()

# %%
# The decision
# ------------
# Of those that keep at least nine tenths of the distance between tissues, take the one
# whose scanners are closest.

kept = [found.unbiased / methods.biology[0].unbiased for found in methods.biology]
fit = [k for k in range(len(kept)) if kept[k] > 0.9]
best = min(fit, key=lambda k: methods.batch[k].unbiased)
print(f"switch on {methods.names[best]}, which keeps {kept[best]:.0%}")

# %%
# Where each slide was scanned on both scanners, slides are pairs, and much less is needed
# to tell: see :doc:`/scanners` for real slides. What normalisers did to real data is in
# :doc:`/real_scanners`.
