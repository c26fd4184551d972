"""Images: colours, geometry, sizes, and how alike two of them are."""
