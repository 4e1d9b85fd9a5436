"""The dashboard: pages in a browser that show streams and queries as they are now, and take new queries."""
