"""Sites: websites, their software and their uptime."""
