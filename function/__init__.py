"""What Telegram talks to: an update in, a program run in the sandbox, an answer out."""

__version__ = "1.0.0"
