"""Each update answered once: deduplicated, leased among replicas, delivered or kept."""
