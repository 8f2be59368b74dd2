"""The baseline distances against independent implementations, and where their block structure could show."""

import math
import tracemalloc

import dcor
import numpy as np
import ot
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, directed_hausdorff, pdist
from scipy.stats import energy_distance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crossfusion as cf
from crossfusion._base import threads
from crossfusion.evaluation.baselines import median_distance, nearest_neighbors, pair_distances
from crossfusion.moments import kernel as kernels

SIZES = [(60, 60, 5), (70, 41, 12), (1, 30, 3), (1, 1, 2), (500, 700, 2), (40, 50, 1)]
sizes = pytest.mark.parametrize("size", SIZES, ids=str)
PAIRWISE = ("mmd", "energy", "hausdorff", "chamfer")
FAST = (*PAIRWISE, "mmd2_unbiased")


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-13)


def clouds(size, shift=0.5):
    n_a, n_b, dim = size
    draw = np.random.default_rng(sum(size))
    return draw.normal(size=(n_a, dim)), draw.normal(size=(n_b, dim)) * 1.5 + shift


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Blocks of a few rows, so that small clouds need many, of uneven sizes."""
    monkeypatch.setattr(pair_distances, "BLOCK_ROWS", 7)
    monkeypatch.setattr(pair_distances, "BLOCK_COLUMNS", 11)
    monkeypatch.setattr(pair_distances, "RECOMPUTE_SIZE", 16)
    monkeypatch.setattr(median_distance, "MAX_LISTED_PAIRS", 10)
    monkeypatch.setattr(median_distance, "GATHER_SIZE", 16)
    monkeypatch.setattr(nearest_neighbors, "PROBES", (2, 1))
    monkeypatch.setattr(nearest_neighbors, "FIRST_VISIT", 3)
    monkeypatch.setattr(nearest_neighbors, "VISIT_BLOCK_PAIRS", 40)
    monkeypatch.setattr(nearest_neighbors, "VISIT_BLOCK_ROWS", 5)
    monkeypatch.setattr(nearest_neighbors, "MIN_PARALLEL_PAIRS", 0)


# Optimal transport


def assignment(a, b):
    squares = cdist(a, b, "sqeuclidean")
    return squares[linear_sum_assignment(squares)].mean()


def test_wasserstein_of_clouds_of_one_size_is_the_best_assignment():
    a, b = clouds((80, 80, 6))
    assert cf.distance("wasserstein", a, b) == near(math.sqrt(assignment(a, b)))


@sizes
def test_wasserstein_is_that_of_pot(size):
    a, b = clouds(size)
    expected = ot.emd2(np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b)), cdist(a, b, "sqeuclidean"))
    assert cf.distance("wasserstein", a, b) == near(math.sqrt(expected))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_translation_and_deformation_are_what_they_are_called(offset):
    a, b = (rows + offset for rows in clouds((80, 80, 6)))
    parts = cf.wasserstein_decomposition(a, b)
    assert parts.translation == pytest.approx(np.sum((a.mean(axis=0) - b.mean(axis=0)) ** 2), rel=1e-9)
    assert parts.deformation == pytest.approx(assignment(a - a.mean(axis=0), b - b.mean(axis=0)), rel=1e-9)
    assert parts.total == pytest.approx(cf.distance("wasserstein", a, b) ** 2, rel=1e-9)
    assert parts.distance == pytest.approx(cf.distance("wasserstein", a, b), rel=1e-9)


@sizes
def test_sliced_wasserstein_is_that_of_pot_along_the_same_directions(size):
    a, b = clouds(size)
    directions = np.random.default_rng(3).standard_normal((64, size[2]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = ot.sliced_wasserstein_distance(a, b, projections=directions.T)
    assert cf.distance("sliced_wasserstein", a, b, projections=64, seed=3) == near(expected)


@sizes
def test_gaussian_wasserstein_is_the_frechet_distance(size):
    a, b = clouds(size)
    cov_a, cov_b = (np.atleast_2d(np.cov(rows.T, bias=True)) for rows in (a, b))
    cross = 0.0
    if min(size[:2]) > size[2]:  # otherwise singular, and the square root of SciPy loses half of its digits
        cross = np.trace(sqrtm(cov_a @ cov_b)).real
    elif min(size[:2]) > 1:
        pytest.skip("no independent value")
    square = np.sum((a.mean(axis=0) - b.mean(axis=0)) ** 2) + np.trace(cov_a) + np.trace(cov_b) - 2 * cross
    assert cf.distance("gaussian_wasserstein", a, b) == near(math.sqrt(square))


def test_gaussian_wasserstein_is_that_of_pot():
    a, b = clouds((90, 70, 8))
    expected = ot.gaussian.bures_wasserstein_distance(
        a.mean(axis=0), b.mean(axis=0), np.cov(a.T, bias=True), np.cov(b.T, bias=True)
    )
    assert cf.distance("gaussian_wasserstein", a, b) == pytest.approx(float(expected), rel=1e-9)


# Kernels and energies


def kernel_means(a, b, h):
    return [np.exp(-cdist(x, y, "sqeuclidean") / (2 * h * h)) for x, y in ((a, a), (b, b), (a, b))]


@sizes
@pytest.mark.parametrize("bandwidth", [None, 0.7])
def test_mmd_is_its_formula(size, bandwidth):
    a, b = clouds(size)
    h = bandwidth or np.median(pdist(np.concatenate([a, b])))
    aa, bb, ab = kernel_means(a, b, h)
    square = aa.mean() + bb.mean() - 2 * ab.mean()
    assert cf.distance("mmd", a, b, bandwidth=bandwidth) == pytest.approx(math.sqrt(square), rel=1e-9)


@pytest.mark.parametrize("size", [(60, 60, 5), (2, 30, 3), (2, 2, 2), (500, 700, 2)], ids=str)
def test_unbiased_mmd_is_its_formula(size):
    a, b = clouds(size)
    aa, bb, ab = kernel_means(a, b, np.median(pdist(np.concatenate([a, b]))))
    mean_a, mean_b = ((k.sum() - len(k)) / (len(k) * (len(k) - 1)) for k in (aa, bb))
    expected = mean_a + mean_b - 2 * ab.mean()
    assert cf.distance("mmd2_unbiased", a, b) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_unbiased_mmd_is_zero_on_average_and_not_clipped():
    draw = np.random.default_rng(0)
    found = [cf.distance("mmd2_unbiased", *draw.normal(size=(2, 20, 5))) for _ in range(200)]
    assert min(found) < 0
    assert abs(np.mean(found)) < 3 * np.std(found) / math.sqrt(len(found))


@pytest.mark.parametrize("few", [10, 2**20], ids=["bracket", "list"])
@pytest.mark.parametrize("number", [2, 3, 40, 301, 900])
def test_the_median_distance_is_exact(number, few, monkeypatch):
    monkeypatch.setattr(median_distance, "MAX_LISTED_PAIRS", few)
    rows = np.random.default_rng(number).normal(size=(number, 3))
    found = median_distance.find_median_distance(rows[: number // 2], rows[number // 2 :])
    assert found == pytest.approx(np.median(pdist(rows)), rel=1e-12)


def test_the_median_distance_is_exact_when_the_sample_misleads(monkeypatch):
    monkeypatch.setattr(median_distance, "MAX_LISTED_PAIRS", 10)
    rows = np.random.default_rng(0).normal(size=(200, 3))
    for wrong in (np.zeros(500), np.full(500, 1e9), np.linspace(90, 95, 500)):
        monkeypatch.setattr(median_distance, "_sample_pairs", lambda rows, wrong=wrong: wrong)
        assert median_distance.find_median_distance(rows[:90], rows[90:]) == pytest.approx(
            np.median(pdist(rows)), rel=1e-12
        )


@pytest.mark.parametrize("values", [2, 3, 10])
def test_the_median_distance_of_rows_on_a_grid(values, monkeypatch):
    monkeypatch.setattr(median_distance, "MAX_LISTED_PAIRS", 10)
    rows = np.random.default_rng(values).integers(values, size=(301, 4)).astype(float)
    assert median_distance.find_median_distance(rows[:100], rows[100:]) == pytest.approx(
        np.median(pdist(rows)), rel=1e-12
    )


def test_ties_are_counted_and_not_kept(monkeypatch):
    monkeypatch.setattr(median_distance, "MAX_LISTED_PAIRS", 10)
    kept: list[median_distance.BracketCounts] = []
    scan = median_distance._count_bracket

    def watched(*arguments):
        kept.append(scan(*arguments))
        return kept[-1]

    monkeypatch.setattr(median_distance, "_count_bracket", watched)
    rows = np.eye(30)[np.random.default_rng(0).integers(30, size=600)] / 7  # equal distances, but for rounding
    median_distance.find_median_distance(rows[:300], rows[300:])
    assert len(kept) == 1
    assert sum(len(found[3]) for found in kept) < 0.05 * 600 * 599 / 2


def test_a_median_of_zero_needs_a_bandwidth(refuses):
    a, b = np.zeros((20, 2)), np.concatenate([np.zeros((18, 2)), np.ones((2, 2))])
    with refuses("median distance between rows is 0.*pass a bandwidth"):
        cf.distance("mmd", a, b)
    assert cf.distance("mmd", a, b, bandwidth=1.0) == pytest.approx(0.1 * math.sqrt(2 - 2 * math.exp(-1)))


def test_rows_that_are_all_equal_are_at_distance_zero():
    rows = np.full((5, 3), 0.1)
    for name in ("mmd", "mmd2_unbiased", "energy", "hausdorff", "chamfer", "wasserstein"):
        assert cf.distance(name, rows, rows[:3]) == 0


@sizes
def test_energy_is_that_of_dcor(size):
    a, b = clouds(size)
    assert cf.distance("energy", a, b) ** 2 == pytest.approx(dcor.energy_distance(a, b), rel=1e-9)


def test_energy_of_one_feature_is_that_of_scipy():
    a, b = clouds((40, 50, 1))
    assert cf.distance("energy", a, b) == pytest.approx(energy_distance(a[:, 0], b[:, 0]), rel=1e-9)


# Nearest rows


@sizes
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_hausdorff_is_that_of_scipy(size, shift):
    a, b = clouds(size, shift)
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])
    assert cf.distance("hausdorff", a, b) == pytest.approx(expected, rel=1e-12)


def test_either_direction_of_hausdorff_can_win():
    a, b = np.zeros((4, 2)), np.array([[0.0, 0.0], [3.0, 4.0]])
    assert cf.distance("hausdorff", a, b) == cf.distance("hausdorff", b, a) == 5


@sizes
def test_chamfer_is_that_of_scikit_learn(size):
    a, b = clouds(size)
    expected = sum(pairwise_distances_argmin_min(x, y)[1].mean() for x, y in ((a, b), (b, a))) / 2
    assert cf.distance("chamfer", a, b) == pytest.approx(expected, rel=1e-9)


# A classifier


def test_the_classifier_is_a_cross_validated_regression():
    a, b = clouds((80, 40, 6), shift=0.3)
    rows, labels = np.concatenate([a, b]), np.repeat([0, 1], [80, 40])
    wrong = np.empty(120, bool)
    for train, test in StratifiedKFold(4, shuffle=True, random_state=2).split(rows, labels):
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
        wrong[test] = model.fit(rows[train], labels[train]).predict(rows[test]) != labels[test]
    expected = 2 * (1 - 2 * np.mean([wrong[:80].mean(), wrong[80:].mean()]))
    assert cf.distance("classifier", a, b, folds=4, seed=2) == pytest.approx(expected, rel=1e-12)


# Blocks and threads


def squares_by_differences(a, b):
    return np.array([[np.sum((x - y) ** 2) for y in b] for x in a])


@pytest.mark.parametrize("size", SIZES[:4], ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distances_are_those_of_differences(size, offset, tiny_blocks):
    a, b = (rows + offset for rows in clouds(size))
    b[::2] = a[: len(b[::2])] if len(a) >= len(b) else b[::2]
    expected = squares_by_differences(a, b)
    found = pair_distances.compute_squared_distances(a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.array_equal(found == 0, expected == 0)


def test_an_offset_common_to_both_makes_no_pair_close(monkeypatch):
    recomputed = []
    monkeypatch.setattr(pair_distances, "_recompute", lambda squares, a, b, pairs: recomputed.append(pairs))
    a, b = clouds((60, 50, 5))
    pair_distances.compute_squared_distances(a + 1e6, b + 1e6)
    assert not recomputed
    pair_distances.compute_squared_distances(a + 1e6, a + 1e6)
    assert sum(len(pairs[0]) for pairs in recomputed) == len(a)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_squared_distances_of_close_rows_keep_their_digits(gap):
    draw = np.random.default_rng(0)
    a = draw.normal(size=(50, 6))
    b = a + gap * draw.normal(size=a.shape)
    np.testing.assert_allclose(pair_distances.compute_squared_distances(a, b), squares_by_differences(a, b), rtol=1e-9)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("size", [*SIZES[:2], (200, 90, 2)], ids=str)
def test_blocks_change_nothing(name, size, monkeypatch, request):
    a, b = clouds(size)
    whole = cf.distance(name, a, b)
    request.getfixturevalue("tiny_blocks")
    assert cf.distance(name, a, b) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("name", FAST)
def test_the_number_of_threads_changes_nothing(name, monkeypatch, tiny_blocks):
    a, b = clouds((70, 41, 12))
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(kernels, "thread_count", lambda number=number: number)
        found.append(cf.distance(name, a, b))
    assert found == pytest.approx([found[0]] * 3, rel=1e-12)


@pytest.mark.parametrize("name", FAST)
def test_it_works_without_threadpoolctl(name, monkeypatch, tiny_blocks):
    a, b = clouds((70, 41, 12))
    expected = cf.distance(name, a, b)
    monkeypatch.setattr(threads, "_load_blas", lambda: None)
    assert cf.distance(name, a, b) == pytest.approx(expected, rel=1e-12)


def test_blas_gets_its_threads_back():
    blas = threads._load_blas()

    def allowed():
        return {library["num_threads"] for library in blas.info()}

    with blas.limit(limits=2):
        with threads.map_threads(3), threads.map_threads(1):
            assert allowed() == {1}
        assert allowed() == {2}
        with pytest.raises(ZeroDivisionError), threads.map_threads(3) as apply:
            list(apply(lambda task: 1 / task, [1, 0, 1]))
        assert allowed() == {2}


@pytest.mark.parametrize("name", PAIRWISE)
def test_many_rows_take_many_blocks(name):
    a, b = clouds((3000, 2100, 20), shift=0.2)
    found = cf.distance(name, a, b)
    between = cdist(a, b)
    if name == "hausdorff":
        expected = max(between.min(axis=0).max(), between.min(axis=1).max())
    elif name == "chamfer":
        expected = (between.min(axis=0).mean() + between.min(axis=1).mean()) / 2
    elif name == "energy":
        expected = math.sqrt(2 * between.mean() - cdist(a, a).mean() - cdist(b, b).mean())
    else:
        means = [k.mean() for k in kernel_means(a, b, np.median(pdist(np.concatenate([a, b]))))]
        expected = math.sqrt(means[0] + means[1] - 2 * means[2])
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", PAIRWISE)
def test_memory_does_not_grow_with_the_pairs(name):
    peak_of = {}
    for number in (2000, 4000):
        a, b = clouds((number, number, 8))
        peak_of[number] = peak_bytes(lambda a=a, b=b: cf.distance(name, a, b))
    assert peak_of[4000] < 0.25 * 8 * 4000**2  # of one matrix of distances
    assert peak_of[4000] < 3 * peak_of[2000]


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("offset", [1e6, -1e8])
def test_a_far_offset_costs_no_digits(name, offset):
    grid = [np.round(rows * 2**10) / 2**10 for rows in clouds((60, 50, 5))]  # so that adding the offset is exact
    expected = cf.distance(name, *grid)
    assert cf.distance(name, *(rows + offset for rows in grid)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", FAST)
def test_clouds_far_apart_keep_their_digits(name):
    a, b = clouds((60, 50, 5))
    grid_a, grid_b = np.round(a * 2**10) / 2**10, np.round(b * 2**10) / 2**10 + 1e5
    between, within_a, within_b = (
        np.sqrt(squares_by_differences(x, y)) for x, y in ((grid_a, grid_b), (grid_a, grid_a), (grid_b, grid_b))
    )
    h = 2.0
    kernels_within = [np.exp(-(within**2) / (2 * h * h)) for within in (within_a, within_b)]
    expected = {
        "energy": math.sqrt(2 * between.mean() - within_a.mean() - within_b.mean()),
        "hausdorff": max(between.min(axis=0).max(), between.min(axis=1).max()),
        "chamfer": (between.min(axis=0).mean() + between.min(axis=1).mean()) / 2,
        "mmd": math.sqrt(sum(kernel.mean() for kernel in kernels_within)),
        "mmd2_unbiased": sum((k.sum() - len(k)) / len(k) / (len(k) - 1) for k in kernels_within),
    }
    options = {"bandwidth": h} if "mmd" in name else {}
    assert cf.distance(name, grid_a, grid_b, **options) == pytest.approx(expected[name], rel=1e-9)


@pytest.mark.parametrize("name", [*PAIRWISE, "wasserstein"])
def test_copies_of_rows_are_at_distance_zero(name):
    a = np.random.default_rng(0).normal(size=(150, 3)) * 1e3 + 1e5
    assert cf.distance(name, a, np.repeat(a, 2, axis=0)[::-1]) == 0


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("seed", range(5))
def test_another_order_of_the_rows_is_at_distance_zero(name, seed):
    draw = np.random.default_rng(seed)
    a = draw.normal(size=(300 + 10 * seed, 1 + 4 * seed))
    assert cf.distance(name, a, draw.permutation(a)) == 0


@pytest.mark.parametrize("name", ["hausdorff", "chamfer"])
def test_a_copy_among_the_rows_is_nearest(name, tiny_blocks):
    draw = np.random.default_rng(0)
    b = draw.normal(size=(60, 4))
    a = draw.permutation(b)[:30]
    expected = cdist(a, b).min(axis=0)
    found = cf.distance(name, a, b)
    assert found == pytest.approx(expected.max() if name == "hausdorff" else expected.mean() / 2, rel=1e-12)


@pytest.mark.parametrize("far", [100.0, 1e3, 1e6])
def test_sinkhorn_sends_the_mass_of_a_row_that_is_far_away(far):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(300, 8)), rng.normal(size=(300, 8))
    a[0] = far
    exact = cf.distance("wasserstein", a, b)
    for pair in ((a, b), (b, a)):
        assert exact * (1 - 1e-12) <= cf.distance("sinkhorn", *pair) <= exact * 1.01


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 10.0])
def test_sinkhorn_is_the_cost_of_a_whole_plan(epsilon):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(60, 16)), rng.normal(0.3, size=(80, 16))
    exact = cf.distance("wasserstein", a, b)
    assert cf.distance("sinkhorn", a, b, epsilon=epsilon) >= exact * (1 - 1e-12)
    independent = np.sqrt(cdist(a, b, "sqeuclidean").mean())  # the plan of an infinite entropy
    assert cf.distance("sinkhorn", a, b, epsilon=1e6) == pytest.approx(independent, rel=1e-3)


@pytest.mark.parametrize("scale", [1e-120, 1e-8, 1e8, 1e130])
def test_scale_costs_no_digits(scale):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(40, 5)), rng.normal(0.5, size=(30, 5))
    for name in ("wasserstein", "sliced_wasserstein", "gaussian_wasserstein", "hausdorff", "chamfer"):
        assert cf.distance(name, scale * a, scale * b) / scale == pytest.approx(cf.distance(name, a, b), rel=1e-9)
    found = cf.distance("sinkhorn", scale * a, scale * b, epsilon=0.1 * scale**2)
    assert found / scale == pytest.approx(cf.distance("sinkhorn", a, b), rel=1e-9)


@pytest.mark.parametrize(("scale", "way"), [(1e155, "down"), (1e300, "down"), (1e-170, "up")])
def test_squares_beyond_float64_are_refused(scale, way, refuses):
    a, b = scale * np.eye(6), scale * np.ones((5, 6))
    for name in set(cf.distances) - {"cfd", "cfd_unbiased", "cfd_balanced"}:
        with refuses(f"leave the range of float64: scale both {way}"):
            cf.distance(name, a, b)


def test_options_of_any_number_type():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(20, 3)), rng.normal(0.5, size=(20, 3))
    expected = cf.distance("mmd", a, b, bandwidth=20.0)
    for bandwidth in (20, np.int8(20), np.float16(20), np.float32(20)):
        assert cf.distance("mmd", a, b, bandwidth=bandwidth) == pytest.approx(expected, rel=1e-12)
    assert cf.distance("mmd", a, b, bandwidth=1e-200) == pytest.approx(np.sqrt(1 / 20 + 1 / 20))
    assert cf.distance("mmd", a, b, bandwidth=1e160) == 0


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mmd", {"bandwidth": 10**400}, "bandwidth=1000"),
        ("mmd", {"bandwidth": np.complex128(1)}, "bandwidth="),
        ("sinkhorn", {"epsilon": float("inf")}, "epsilon=inf"),
        ("classifier", {"seed": 2**32}, "seed=4294967296"),
    ],
)
def test_options_out_of_range_are_refused(name, options, said, refuses):
    with refuses(said):
        cf.distance(name, np.eye(6), np.ones((7, 6)), **options)


def test_a_name_that_is_no_text_is_refused(refuses):
    with refuses("crossfusion has no distance"):
        cf.distance(np.array([1, 2]), [[0.0]], [[1.0]])
