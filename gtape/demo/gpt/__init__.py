"""`python -m gtape demo gpt`: a small language model trained on one text."""
