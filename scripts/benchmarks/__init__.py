"""Time and peak memory of the metrics beside named peers, by airspeed velocity: `make benchmark`."""
