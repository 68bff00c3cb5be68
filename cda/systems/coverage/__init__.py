"""Coverage determination: the policy tools, their server and client, and the runs that stand on them."""
