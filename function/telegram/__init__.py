"""The Bot API: its JSON to and from our types, and a client for its calls."""
