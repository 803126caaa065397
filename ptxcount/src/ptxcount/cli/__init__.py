"""Arguments and options of the commands, and how a command ends."""
