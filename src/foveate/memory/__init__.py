"""Conversation memory in front of any chat model: `FocusManager`. No torch."""

from foveate.memory.counting import CautiousCounter
from foveate.memory.focus import FocusManager

__all__ = ["CautiousCounter", "FocusManager"]
