"""Runs in an environment of its own, without crossfusion: evidently's detectors on streams of embeddings."""

from typing import Any


def detectors() -> dict[str, Any]:
    """Each detector: from the reference's rows to a function of the rows of a window."""
    import pandas as pd
    from evidently.legacy.metrics.data_drift import embedding_drift_methods as methods

    def of(method: Any) -> Any:
        def fit(reference: Any) -> Any:
            # the default of EmbeddingsDriftMetric, which applies these, depends on the rows of the reference
            chosen = method or methods.model(bootstrap=len(reference) < 1000)
            return lambda window: bool(chosen(pd.DataFrame(window), pd.DataFrame(reference))[1])

        return fit

    return {
        "evidently, default (classifier)": of(None),
        "evidently, MMD, bootstrap": of(methods.mmd(bootstrap=True)),
        "evidently, MMD, bootstrap, quantile 0.99": of(methods.mmd(bootstrap=True, quantile_probability=0.99)),
    }


if __name__ == "__main__":
    from harness import main

    main(detectors())
