# SPDX-License-Identifier: Apache-2.0
"""Stoker feeds image training: torchvision's pixels, bit for bit, from C threads.

    import stoker

    loader = stoker.Loader("photos", "random_resized_crop(224) random_horizontal_flip normalize(imagenet)", batch=64)
    for epoch in range(10):
        for images, labels in loader:  # float32, 64 x 3 x 224 x 224; int64, 64
            ...

or, with a PyTorch DataLoader that is there already: ``loader = stoker.accelerate(loader)``.
"""

from ._accelerate import NotAccelerated, accelerate
from ._compose import from_torchvision
from ._core import (
    DataError,
    ForkError,
    LimitError,
    OutOfMemory,
    ReadError,
    SettingError,
    StallError,
    StokerError,
    UnsupportedError,
    cpu,
    decode,
    usable_cores,
)
from ._core import version as _version
from ._dataset import Check, Dataset
from ._loader import Batch, Loader
from ._pack import PackReport, UnpackReport, pack, unpack, verify
from ._spec import Draw, Spec
from .transforms import (
    CenterCrop,
    Grayscale,
    Normalize,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    To,
    ToTensor,
    Transform,
)

__version__ = _version()

__all__ = [
    "Batch",
    "CenterCrop",
    "Check",
    "DataError",
    "Dataset",
    "Draw",
    "ForkError",
    "Grayscale",
    "LimitError",
    "Loader",
    "Normalize",
    "NotAccelerated",
    "OutOfMemory",
    "PackReport",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "ReadError",
    "Resize",
    "SettingError",
    "Spec",
    "StallError",
    "StokerError",
    "To",
    "ToTensor",
    "Transform",
    "UnpackReport",
    "UnsupportedError",
    "__version__",
    "accelerate",
    "cpu",
    "decode",
    "from_torchvision",
    "pack",
    "unpack",
    "usable_cores",
    "verify",
]
