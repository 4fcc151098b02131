"""How a run takes its steps on each backend, on one device or several.

`engine.py` says where a run is built and trained. The module named after a backend has the same
functions for each: `batches` feeds `model.fit`, `steps_per_execution` says how many steps one call
takes, `take_over` replaces Keras's own step functions where they do not work, `callbacks` adds to
those of every run. TensorFlow and JAX also have `data_parallel`, which finds the devices.
"""
