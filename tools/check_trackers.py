"""Log results to a local store of MLflow, in an environment of its own, and read them back.

python -m tools.check_trackers [FOLDER]

MLflow cannot be installed beside the pinned test environment, which has a newer protobuf and pandas.
"""

import sys
import tempfile
from pathlib import Path

from tools.check_gates import ROOT, make_environment, run

LOG = """
import math
import mlflow, numpy as np, crossfusion as cf
rng = np.random.default_rng(0)
x, site = rng.normal(size=(200, 4)), np.array(["north/1", "a:b", "é", ".."])[np.arange(200) % 4]
patient = np.arange(200) // 8
summary = cf.summarize(x, by={"site": site, "patient": patient})
results = [summary.cfd("site", units="patient", level=0.95), summary.pairwise("site", units="patient")]
results += [cf.check({"rule": [{"between": "site", "units": "patient", "max": 0.02}]}, summary)]
mlflow.set_tracking_uri("STORE")
for result in results:
    with mlflow.start_run() as run:
        mlflow.log_metrics(result.to_metrics("val/"), step=1)
    found = mlflow.get_run(run.info.run_id).data.metrics
    assert found == result.to_metrics("val/"), (found, result.to_metrics("val/"))
    assert found and all(map(math.isfinite, found.values()))
    print(f"ok: MLflow {mlflow.__version__} keeps {len(found)} numbers of a {type(result).__name__}")
"""


def main() -> None:
    """Install, log and read back."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        programs = make_environment(folder / "mlflow", "mlflow")
        run("git", "clone", "-q", ROOT, folder / "clone", cwd=ROOT)
        run(programs / "python", "-m", "pip", "install", "--quiet", folder / "clone", cwd=ROOT)
        print(
            run(
                programs / "python",
                "-W",
                "ignore",
                "-c",
                LOG.replace("STORE", f"sqlite:///{folder}/runs.db"),
                cwd=folder,
            )
        )


if __name__ == "__main__":
    main()
