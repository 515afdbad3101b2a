"""The command line: one short module per command, imported when it is called."""
