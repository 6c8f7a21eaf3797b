"""The web page of saved results: its tables, charts and pictures, rendered as one HTML file."""
