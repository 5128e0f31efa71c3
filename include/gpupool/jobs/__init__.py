"""Running a job on leased devices and saying how it ended."""
