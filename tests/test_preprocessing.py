"""Preprocessing layers: against NumPy, in training and inference, saved and loaded, compiled."""

import keras
import numpy as np
import pytest
from harness import array

from highway_keras.data import (
    GlobalContrastNormalization,
    MeanImage,
    Mirror,
    PadAndCrop,
    augmenter,
    preprocessor,
)

IMAGES = np.random.default_rng(0).integers(1, 256, (60, 12, 10, 3), "uint8")
LAYERS = {
    GlobalContrastNormalization: {"epsilon": 0.5},
    MeanImage: {},
    PadAndCrop: {"pad": 3, "seed": 5},
    Mirror: {"seed": 5},
}


def gcn(x):
    x = x.astype("float64")
    axes = (1, 2, 3)
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


@pytest.mark.parametrize("kind", LAYERS)
def test_config_and_shape(kind):
    layer = kind(**LAYERS[kind])
    config = layer.get_config()
    assert kind.from_config(config).get_config() == config
    assert config.items() >= LAYERS[kind].items()
    assert keras.saving.get_registered_name(kind) == f"highway_keras>{kind.__name__}"
    assert layer.compute_output_shape(IMAGES.shape) == IMAGES.shape
    assert layer(keras.Input(IMAGES.shape[1:])).shape == (None, *IMAGES.shape[1:])


def test_bad_arguments(digits):
    with pytest.raises(ValueError, match="epsilon"):
        GlobalContrastNormalization(epsilon=0)
    with pytest.raises(ValueError, match="pad"):
        PadAndCrop(pad=0)
    with pytest.raises(ValueError, match="preprocessing"):
        preprocessor(("scale", "whiten"), digits.x_train)
    with pytest.raises(ValueError, match="augmentation"):
        augmenter(("mirror", "scale"), (8, 8, 1))


@pytest.mark.parametrize("images", [IMAGES, IMAGES / np.float32(256)], ids=["uint8", "float32"])
def test_gcn_equals_numpy(images):
    result = GlobalContrastNormalization()(images)
    np.testing.assert_allclose(array(result), gcn(IMAGES), atol=1e-5)
    flat = np.full((2, 32, 32, 3), 251, "float32") * np.float32(images.max() / IMAGES.max())
    assert np.abs(array(GlobalContrastNormalization()(flat))).max() < 0.02  # one color
    half = GlobalContrastNormalization(dtype="mixed_bfloat16")(images)
    assert keras.backend.standardize_dtype(half.dtype) == "bfloat16"
    np.testing.assert_allclose(array(half), gcn(IMAGES), atol=2**-7 * 2)
    low = array(GlobalContrastNormalization(epsilon=1000.0)(images))
    expected = (images - images.mean((1, 2, 3), keepdims=True)) / 1000
    np.testing.assert_allclose(low, expected, atol=1e-5)


def test_mean_image_adapts_to_an_array_or_batches_again_and_again():
    layer = MeanImage()
    np.testing.assert_array_equal(array(layer(IMAGES)), IMAGES)  # before, the identity
    assert len(layer.non_trainable_weights) == 1 and not layer.trainable_weights
    for images in (IMAGES, [IMAGES[:7], IMAGES[7:]], iter([IMAGES])):
        layer.adapt(IMAGES[:5])
        layer.adapt(images)
        expected = IMAGES - IMAGES.mean(axis=0)
        np.testing.assert_allclose(array(layer(IMAGES)), expected, atol=1e-4)


# PadAndCrop and Mirror


def test_crop_shifts_every_image_on_its_own_to_uniform_positions():
    own = 100 * np.arange(4500, dtype="float32")[:, None, None, None]
    batch = own + np.arange(1, 13, dtype="float32").reshape(1, 4, 3, 1)
    result = array(PadAndCrop(pad=1, seed=0)(batch, training=True))
    padded = np.pad(batch, ((0, 0), (1, 1), (1, 1), (0, 0)))
    crops = [padded[:, top : top + 4, left : left + 3] for top in range(3) for left in range(3)]
    counts = [(result == crop).all((1, 2, 3)).sum() for crop in crops]
    assert sum(counts) == 4500 and (np.abs(np.array(counts) - 500) < 5 * np.sqrt(500)).all()


def test_mirror_flips_about_half_of_the_images_each():
    result = array(Mirror(seed=0)(IMAGES, training=True))
    pairs = list(zip(result, IMAGES, strict=True))
    flipped = np.array([np.array_equal(new, old[:, ::-1]) for new, old in pairs])
    unchanged = np.array([np.array_equal(new, old) for new, old in pairs])
    assert (flipped ^ unchanged).all() and 15 < flipped.sum() < 45


@pytest.mark.parametrize("layer_class", [PadAndCrop, Mirror])
def test_random_layers(layer_class):
    np.testing.assert_array_equal(array(layer_class()(IMAGES)), IMAGES)
    first, second = (layer_class(seed=3) for _ in range(2))
    draws = [array(layer(IMAGES, training=True)) for layer in (first, second, first, second)]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[2], draws[3])
    assert not np.array_equal(draws[0], draws[2])


# preprocessor, augmenter


def test_preprocessor_steps(digits):
    scaled = preprocessor(("scale",), digits.x_train)(digits.x_test)
    np.testing.assert_array_equal(array(scaled), digits.x_test / np.float32(256))
    as_is = preprocessor((), digits.x_train)
    np.testing.assert_array_equal(array(as_is(digits.x_test)), digits.x_test.astype("float32"))
    all_steps = preprocessor(("scale", "gcn", "mean", "half"), digits.x_train)
    mean = gcn(digits.x_train).mean(axis=0)  # of the training images only, two batches
    expected = (gcn(digits.x_test) - mean) / 2
    np.testing.assert_allclose(array(all_steps(digits.x_test)), expected, atol=1e-5)
    fifth = preprocessor(("times.2",), digits.x_train)(digits.x_test)
    np.testing.assert_allclose(array(fifth), digits.x_test / 5, rtol=1e-6)
    normalized = preprocessor(("imagenet",), IMAGES)(IMAGES)
    expected = (IMAGES / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(array(normalized), expected, atol=1e-5)


def test_augmenter(tmp_path):
    assert augmenter((), (8, 8, 1)) is None
    model = augmenter(("crop2", "mirror"), IMAGES.shape[1:], seed=4)
    model.save(tmp_path / "augmenter.keras")
    again = keras.models.load_model(tmp_path / "augmenter.keras")
    assert [(layer.name, layer.seed) for layer in again.layers] == [("crop2", 4), ("mirror", 5)]
    np.testing.assert_array_equal(array(again(IMAGES)), IMAGES)
    assert not np.array_equal(array(again(IMAGES, training=True)), IMAGES)


def test_both_compute_in_float32_under_a_mixed_policy(digits):
    keras.config.set_dtype_policy("mixed_bfloat16")
    result = preprocessor(("scale", "gcn", "mean"), digits.x_train)(digits.x_test)
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    exact = IMAGES / np.float32(256) + 1  # needs more bits than bfloat16 has
    model = augmenter(("crop8", "mirror"), IMAGES.shape[1:], seed=0)
    np.testing.assert_array_equal(array(model(exact)), exact)
    assert keras.backend.standardize_dtype(model(exact, training=True).dtype) == "float32"
