"""The kinds of op: elementwise (atoms, words and their derivatives), primitive and composite."""
