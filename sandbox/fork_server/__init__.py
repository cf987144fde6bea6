"""The fork server: zygote and guests, the function's side of their pipes, the outcome."""
