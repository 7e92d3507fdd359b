"""Generated misbehaviour: a short form in `make test`, a minute of it in `make fuzz`."""
