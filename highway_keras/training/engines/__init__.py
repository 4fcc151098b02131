"""How a run is stepped on each backend, on one device or several.

`engine.py` says where a run is built and trained. The module named as the backend has the same
functions in each: `batches` feeds `model.fit`, `steps_per_execution` says how many steps one call
takes, `take_over` replaces Keras's own step functions where they do not serve, `callbacks` adds to
those of every run. TensorFlow and JAX also have `data_parallel`, which finds the devices.
"""
