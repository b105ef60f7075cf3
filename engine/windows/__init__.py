"""What a text costs when a query sees less of it: windows, budgets, models without attention."""
