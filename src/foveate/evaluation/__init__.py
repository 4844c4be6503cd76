"""Methods, the runner that measures them on a corpus, result rows, tables and plots."""
