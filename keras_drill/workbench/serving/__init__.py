"""A development server for exported models, with the interfaces of TensorFlow Serving.

The server needs only TensorFlow and tensorflow-text to run SavedModels. See docs/how-to/serve.md.
"""

from keras_drill.workbench.serving.batching import BatchingOptions
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.server import Server, ServerOptions, serve

__all__ = ["BatchingOptions", "Limits", "Server", "ServerOptions", "serve"]
