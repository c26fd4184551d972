"""`tf.function`: a Python function becomes a graph, and the graph one program. README.md walks one
function through every stage."""
