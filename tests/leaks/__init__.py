"""Nothing planted comes out: secrets, signatures, URL queries and bodies stay where they belong (I9)."""
