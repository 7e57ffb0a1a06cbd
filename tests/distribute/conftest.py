import keras

# Those for JAX's devices.
collect_ignore = [] if keras.backend.backend() == "jax" else ["sharded"]
