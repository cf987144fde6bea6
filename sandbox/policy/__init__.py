"""The policy file: read with positions, checked by its schema, made into one frozen Policy."""
