"""What the bot remembers: in memory, in a file, or on a Redis server."""
