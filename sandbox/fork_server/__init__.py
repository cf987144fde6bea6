"""The fork server: zygote and guests, the function's side of their pipes, the outcome.

What the zygote loads, here and of `kernel`, imports the standard library only, and little of it:
each guest pays for its pages.
"""
