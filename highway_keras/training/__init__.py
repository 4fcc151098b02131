"""Training: recipes as data, and the trainer that reads them."""
