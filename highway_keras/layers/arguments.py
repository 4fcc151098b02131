"""The types of what layers take as arguments, for editors and type checkers."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypedDict
from typing import Unpack as Unpack

import keras

# Each is what Keras reads: a name, an object or function, or a stored configuration.
Activation: TypeAlias = str | Callable[..., Any] | dict[str, Any] | None
Initializer: TypeAlias = float | str | Callable[..., Any] | dict[str, Any] | None
Regularizer: TypeAlias = str | Callable[..., Any] | dict[str, Any] | None
Constraint: TypeAlias = str | Callable[..., Any] | dict[str, Any] | None
Carry: TypeAlias = Literal["coupled", "learned"]
Size: TypeAlias = int | tuple[int, ...] | list[int]


class LayerArguments(TypedDict, total=False):
    """The arguments of `keras.Layer` that every layer takes as keywords."""

    name: str | None
    dtype: str | keras.DTypePolicy | None
    trainable: bool
    autocast: bool
