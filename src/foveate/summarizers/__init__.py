"""The COMPRESSED tier: shorter forms of a turn, and what they must not lose. No torch."""
