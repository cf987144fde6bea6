"""Answers as people see them: safe text, within Telegram's limits."""
