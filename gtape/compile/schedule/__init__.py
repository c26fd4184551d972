"""Which nodes become one loop, in what order, and where values lie."""
