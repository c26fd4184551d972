"""SparseTensors: values at index tuples of a larger tensor, and the functions of them."""
