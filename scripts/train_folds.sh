#!/usr/bin/env bash
# Train the five P1 folds of one configuration, one after the other: scripts/train_folds.sh CONFIG OUT [--dotted.key value ...]
# "{fold}" in a value stands for the fold's number. Interrupted folds resume; finished ones are passed over.
set -euo pipefail
config=${1:?usage: scripts/train_folds.sh CONFIG OUT [--dotted.key value ...]}
out=${2:?usage: scripts/train_folds.sh CONFIG OUT [--dotted.key value ...]}
shift 2
for fold in 0 1 2 3 4; do
  [ -f "$out/fold$fold/result.json" ] && continue
  foveate train "$config" --out "$out/fold$fold" --data.fold "$fold" "${@//\{fold\}/$fold}"
done
