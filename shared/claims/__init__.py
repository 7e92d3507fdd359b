"""The claim stores: the truth about every job (I1)."""
