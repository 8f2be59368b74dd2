"""
Is this week's data still what the model was validated on?
==========================================================

A model was validated on the first ten weeks. Since then images have come in every week,
with more tumours lately, and at some point the lab changed a reagent. When should
somebody look?
"""

import numpy as np

import crossfusion as cf

rng = np.random.default_rng(3)
week = np.repeat(np.arange(1, 25), 90)
share = np.where(week < 16, 0.2, 0.7)  # more tumours from week 16 on
label = (rng.random(len(week)) < share).astype(int)
usual = 0.12 * rng.normal(size=(25, 24))  # weeks differ a little, always
x = rng.normal(size=(len(week), 24)) + usual[week] + np.outer(label, np.full(24, 1.0))
x[week >= 21, :4] += 1.6  # the reagent

# %%
# More tumours are no drift
# -------------------------
# Without the label, the weeks with more tumours are alarms. Given the label, weeks are
# compared within tumours and within the rest, and only what changed in the images is
# left.

summary = cf.summarize(x, by={"week": week, "label": label})
plain = summary.drift("week", reference="first:10", alarm=0.01)
within = summary.drift("week", reference="first:10", given="label", alarm=0.01)
for name, found in {"plain": plain, "given the label": within}.items():
    print(f"{name}: alarms in weeks", np.array(found.periods)[found.alarm])
figure = within.plot()

# %%
# What changed
# ------------
# The first alarm, split over features.

print(within.attributions["features"])

# %%
# The decision
# ------------
# Reserve action for alarms of the last two weeks: one week may be the false alarm in a
# hundred that was allowed.

print("stop and look" if all(within.alarm[-2:]) else "go on")

# %%
# As a nightly job this is one line of shell, ``crossfusion drift weeks.parquet --time
# week --given label --reference first:10 --latest``, whose exit code is 1 if the last
# week is an alarm: page somebody when it was so for two weeks running.
# :doc:`/drift` says what an alarm promises, and where it does not hold.
