"""What all harnesses use: files, programs, releases, stores, companions, kills, and the rows that may not be lost."""
