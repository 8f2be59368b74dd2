"""
Is it the tissue, the hospital or the scanner?
==============================================

Embeddings differ between hospitals. Before money goes into new scanners: how much of it
are the tissues they see, how much the hospitals, and how much the scanners within them?
"""

import crossfusion as cf
from crossfusion.demo import make_population

# four hospitals, three scanners, five tissues; only Cork really differs
table, truth = make_population(0, rows=6000)
summary = cf.summarize(table, by=["site", "scanner", "label", "patient"])

# %%
# Levels add up
# -------------
# Along a hierarchy the distance is a sum: what tissues add, what sites add given the
# tissue, scanners given both, and so on. The order matters, and tissue comes first
# because hospitals do not choose it.

levels = summary.hierarchy(["label", "site", "scanner"])
print(levels)
figure = levels.plot()

# %%
# Which hospital
# --------------
# Each against the rest, as the rows come and given the tissue. The truth of this made-up
# study is known.

plain, given = summary.one_vs_rest("site"), summary.one_vs_rest("site", given="label")
for name in plain:
    print(f"{name:<7} {plain[name].unbiased:.3f}, given it {given[name].unbiased:.3f}")

# %%
# The decision
# ------------
# Act on the larger of the levels below the tissue, and look at the site that stands out
# given the tissue.

below = {level.level: level.unbiased for level in levels.levels if level.level != "label"}
largest = max(below, key=lambda name: below[name])
worst = max(given, key=lambda name: given[name].unbiased)
print(f"harmonise each {largest} first, and look at {worst}")

# %%
# :doc:`/mathematics` says why levels add up, and :doc:`/report` puts all of this on one
# page.
