"""x."""

from crossfusion.demo.population import make
