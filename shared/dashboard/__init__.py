"""rq-dashboard as this project serves it: able to read our messages, behind a password, unable to change anything."""
