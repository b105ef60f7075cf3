"""One file per panel, all alike; the window is made from the rows of `gui.panels.table`."""
