"""Pure metric functions: LoCoMo answers and evidence, retrieval, efficiency, statistics, calibration. No torch."""
