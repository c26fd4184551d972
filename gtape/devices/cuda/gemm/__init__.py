"""Matrix products on a GPU by cuBLASLt, with what belongs before and after them."""
