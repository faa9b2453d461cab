"""The second and third step: the graph that is searched, and the plan of its subtrees."""
