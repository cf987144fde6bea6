"""Runs untrusted Python programs within one policy; knows nothing of Telegram or HTTP."""
