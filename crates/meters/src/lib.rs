//! Fixed-size counters, gauges and histograms with bounded label sets.
