"""Answers as people see them: worded, rendered once, within Telegram's limits."""
