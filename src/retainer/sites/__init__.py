"""Sites: websites, what runs there, and whether they are up."""
