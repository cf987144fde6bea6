"""The Bot API: its JSON read into our types, our types written as its calls, and its limits."""
