"""The static checker: what a program's text gives away, before anything of it runs."""
