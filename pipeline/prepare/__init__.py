"""The second and third step, which make the graph that is searched and the plan of its subtrees."""
