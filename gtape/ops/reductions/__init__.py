"""Many elements to fewer: sums, extremes, moments, running totals, histograms."""
