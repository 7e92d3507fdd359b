"""The receiver: Sume's deliveries in, durable claims out; health and the operator API beside it."""
