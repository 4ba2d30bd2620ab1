"""Reports: what the account has earned, worked and cost."""
