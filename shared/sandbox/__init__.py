"""Real servers, our own processes and a simulated Sume on loopback, for tests, `make demo` and `make dev`.

`postgres.Postgres` and `valkey.Valkey` are embedded servers (the wheels of the `sandbox` extra);
`process.Process` runs one of our own programs; `sume.Sume` is a simulated Sume. Each is a context manager
that leaves nothing behind, and none of the processes outlives the one that started it.
"""
