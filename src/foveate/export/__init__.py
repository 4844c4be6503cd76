"""From a trained run to a folder that serves without torch."""
