"""The learned scorer. Torch starts here; nothing below this floor imports it."""

from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
