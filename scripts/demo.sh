#!/usr/bin/env bash
# The whole path once: train on the shipped synthetic chats, evaluate against the rules on chats it never saw (and on one LoCoMo
# conversation where FOVEATE_DATA has it), export, pack one long chat with the export and without torch. Outputs: runs/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

out=runs/demo
methods=recency,afm-rule,acc-paper,bm25,best-sum-content,$out/train,oracle
export HF_HUB_OFFLINE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 TORCH_LOGS=-onnx WANDB_MODE=offline

step() { printf '\n\033[1m== %s\033[0m  (at %d s)\n' "$1" "$SECONDS"; }

evaluate() {  # corpus, name of the outputs, further options; prints the first table, the report holds them all
  foveate evaluate "$1" --method "$methods" --budgets 256,512,1024 --work "$out/work" \
    --out "$out/$2.jsonl" --report "$out/$2.md" --plot "$out/$2.png" "${@:3}" >/dev/null
  sed -n '/^## ERB in/,/^## All/{/^## All/!p}' "$out/$2.md"
}

rm -rf "$out"
mkdir -p "$out"

step "1. Train the scorer on the shipped synthetic chats"
foveate train configs/toy.yaml --out "$out/train" --data.max_conversations 12 --optim.epochs 3

step "2. Evaluate it against the rules on synthetic chats it never saw"
evaluate synthetic synthetic --data data/synthetic/test.jsonl --limit-conversations 3

if [ -f "${FOVEATE_DATA:-}/locomo/locomo10.json" ]; then
  step "   ... and on one LoCoMo conversation (trained on none of LoCoMo: protocol P0)"
  evaluate locomo locomo-one --limit-conversations 1
else
  echo "(FOVEATE_DATA names no folder with LoCoMo: skipped. data/README.md says where to get it.)"
fi

step "3. Export it: ONNX, safetensors, tokenizer, config, model card"
foveate export "$out/train" "$out/export"

step "4. Pack one long chat with the export, in a process that cannot import torch"
question=$(python -c 'import json; print(json.load(open("data/examples/long_chat.json"))["question"])')
python -c '
import sys

sys.modules["torch"] = None  # any import of torch now fails
from foveate.cli.main import main

sys.exit(main(sys.argv[1:]))
' compress data/examples/long_chat.json --query "$question" --budget 512 --scorer "$out/export" --counter minilm \
  --color --trace "$out/packed.json" --html "$out/packed.html"

step "Where everything lies"
cat <<EOF
  $out/train/              config, metrics.jsonl, checkpoints, model
  $out/synthetic.md        all its tables; rows in synthetic.jsonl, plot in synthetic.png
$([ -f "$out/locomo-one.md" ] && echo "  $out/locomo-one.md       the same for one LoCoMo conversation")
  $out/export/             what FocusManager(scorer="$out/export") loads, without torch
  $out/packed.html         the packed chat with tiers in colour: open it in a browser; every decision in packed.json
done in $SECONDS s
EOF
