"""What training needs from one backend: TensorFlow's input pipeline, and several devices."""
