"""How a run takes its steps on each backend, on one device or several.

`devices.py` says where a run is built and trained. The module named after a backend has the same
functions for each: `batches` feeds `model.fit`, `steps_per_execution` says how many steps one call
takes, `install_train_function` replaces Keras's own train function where that pays or is needed.
TensorFlow and JAX also have `data_parallel`, which finds the devices.
"""
