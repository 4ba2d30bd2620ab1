"""Work: projects, milestones, tasks and time."""
