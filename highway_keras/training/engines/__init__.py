"""Several devices: the batches, steps and strategies that each backend needs for them."""
