"""The web page: its tables, charts and pictures, and the file they become."""
