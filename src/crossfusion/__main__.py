"""The command `crossfusion` as ``python -m crossfusion``."""

from crossfusion.cli import main

if __name__ == "__main__":
    main()
