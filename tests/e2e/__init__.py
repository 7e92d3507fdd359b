"""The whole system as real processes on real servers, held to what the issue and the contract promise."""
