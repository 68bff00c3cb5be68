"""The suites of `cda eval --suite`, one module each; more come by entry points of the group `cda.eval_suites`."""
