"""Arguments and options of the commands, and their exit codes."""
