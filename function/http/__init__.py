"""The routes: requests in, statuses and JSON out."""
