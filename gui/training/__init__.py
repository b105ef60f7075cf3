"""The training lab: its window, its runs, and the processes that train."""
