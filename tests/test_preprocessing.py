"""Preprocessing layers: against NumPy, in training and inference, saved and loaded, compiled."""

import keras
import numpy as np
import pytest

from highway_keras.data import (
    GlobalContrastNormalization,
    MeanImage,
    Mirror,
    PadAndCrop,
    augmenter,
    load,
    preprocessor,
)

IMAGES = np.random.default_rng(0).integers(1, 256, (60, 12, 10, 3), "uint8")
LAYERS = [
    (GlobalContrastNormalization, {"epsilon": 0.5}),
    (MeanImage, {}),
    (PadAndCrop, {"pad": 3, "seed": 5}),
    (Mirror, {"seed": 5}),
]


@pytest.fixture(scope="module")
def digits():
    return load("digits", limit=300)


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def reload(model, path):
    model.save(path)
    return keras.models.load_model(path)


def gcn(x):
    x = x.astype("float64")
    axes = (1, 2, 3)
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


@pytest.mark.parametrize(("layer_class", "arguments"), LAYERS)
def test_config_and_shape(layer_class, arguments):
    layer = layer_class(**arguments)
    config = layer.get_config()
    again = layer_class.from_config(config)
    assert again.get_config() == config
    assert {key: config[key] for key in arguments} == arguments
    assert keras.saving.get_registered_name(layer_class) == f"highway_keras>{layer_class.__name__}"
    assert layer.compute_output_shape(IMAGES.shape) == IMAGES.shape
    assert layer(keras.Input(IMAGES.shape[1:])).shape == (None, *IMAGES.shape[1:])


BAD = [(GlobalContrastNormalization, "epsilon", v) for v in (0, -1.0, float("nan"), "1e-3", None)]
BAD += [(PadAndCrop, "pad", v) for v in (0, -1, 2.0, "8", True, None)]


@pytest.mark.parametrize(("layer_class", "argument", "value"), BAD)
def test_bad_arguments(layer_class, argument, value):
    with pytest.raises(ValueError, match=argument):
        layer_class(**{argument: value})


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("scale", [1, 1 / 256])
def test_gcn_equals_numpy(scale, dtype):
    images = IMAGES if dtype == "uint8" else IMAGES * np.float32(scale)
    result = GlobalContrastNormalization()(images)
    np.testing.assert_allclose(to_numpy(result), gcn(IMAGES), atol=1e-5)
    flat = np.full((2, 32, 32, 3), 251, "float32") * np.float32(scale)  # one colour
    assert np.abs(to_numpy(GlobalContrastNormalization()(flat))).max() < 0.02


def test_gcn_in_half_precision_keeps_its_statistics():
    result = GlobalContrastNormalization(dtype="mixed_bfloat16")(IMAGES)
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"
    np.testing.assert_allclose(to_numpy(result).astype("float32"), gcn(IMAGES), atol=2**-7 * 2)


def test_mean_image_adapts_to_an_array_or_batches_again_and_again():
    layer = MeanImage()
    np.testing.assert_array_equal(to_numpy(layer(IMAGES)), IMAGES)  # before, the identity
    assert len(layer.non_trainable_weights) == 1 and not layer.trainable_weights
    layer.adapt(IMAGES[:5])
    for images in (IMAGES, [IMAGES[:7], IMAGES[7:]], iter([IMAGES])):
        for adapted in (layer, MeanImage()):
            images = list(images) if not hasattr(images, "shape") else images
            adapted.adapt(images)
            expected = IMAGES - IMAGES.mean(axis=0)
            np.testing.assert_allclose(to_numpy(adapted(IMAGES)), expected, atol=1e-4)
    for nothing in ([], np.zeros((0, 4, 4, 1))):
        with pytest.raises(ValueError, match="data"):
            MeanImage().adapt(nothing)


# PadAndCrop and Mirror


def shifts(image, result, pad):
    """Every (top, left) position at which the crop of the padded `image` equals `result`."""
    height, width, _ = image.shape
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
    return [
        (top, left)
        for top in range(2 * pad + 1)
        for left in range(2 * pad + 1)
        if np.array_equal(padded[top : top + height, left : left + width], result)
    ]


def test_crop_shifts_every_image_on_its_own():
    result = to_numpy(PadAndCrop(pad=2, seed=1)(IMAGES, training=True))
    found = [shifts(image, crop, 2) for image, crop in zip(IMAGES, result, strict=True)]
    assert all(len(positions) == 1 for positions in found)
    assert len({positions[0] for positions in found}) > 15  # of 25, in 60 draws


def test_crop_positions_are_uniform():
    image = np.arange(1, 10, dtype="float32").reshape(1, 3, 3, 1)
    batch = np.repeat(image, 4500, axis=0)
    result = to_numpy(PadAndCrop(pad=1, seed=0)(batch, training=True))
    centres = result[:, 1, 1, 0].astype(int)  # 1..9: which pixel came to the centre
    counts = np.bincount(centres, minlength=10)[1:]
    assert counts.sum() == 4500 and (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_mirror_flips_about_half_of_the_images_each():
    result = to_numpy(Mirror(seed=0)(IMAGES, training=True))
    pairs = list(zip(result, IMAGES, strict=True))
    flipped = np.array([np.array_equal(new, old[:, ::-1]) for new, old in pairs])
    kept = np.array([np.array_equal(new, old) for new, old in pairs])
    assert (flipped ^ kept).all() and 15 < flipped.sum() < 45


@pytest.mark.parametrize("layer_class", [PadAndCrop, Mirror])
def test_random_layers(layer_class):
    for result in (layer_class()(IMAGES), layer_class()(IMAGES, training=False)):
        np.testing.assert_array_equal(to_numpy(result), IMAGES)
    first, second = (layer_class(seed=3) for _ in range(2))
    draws = [to_numpy(layer(IMAGES, training=True)) for layer in (first, second, first, second)]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[2], draws[3])
    assert not np.array_equal(draws[0], draws[2])
    with pytest.raises(ValueError, match="expected ndim=4"):
        layer_class()(np.zeros((8, 8, 1)))


# preprocessor, augmenter


def test_preprocessor_steps(digits):
    scaled = preprocessor(("scale",), digits.x_train)(digits.x_test)
    np.testing.assert_array_equal(to_numpy(scaled), digits.x_test / np.float32(256))
    as_is = preprocessor((), digits.x_train)
    np.testing.assert_array_equal(to_numpy(as_is(digits.x_test)), digits.x_test.astype("float32"))
    all_steps = preprocessor(("scale", "gcn", "mean", "half"), digits.x_train)
    mean = gcn(digits.x_train).mean(axis=0)  # of the training images only
    expected = (gcn(digits.x_test) - mean) / 2
    np.testing.assert_allclose(to_numpy(all_steps(digits.x_test)), expected, atol=1e-5)


def test_the_mean_is_that_of_all_batches():
    many = np.random.default_rng(0).integers(0, 256, (2500, 3, 3, 1), "uint8")
    model = preprocessor(("mean",), many)
    np.testing.assert_allclose(to_numpy(model.layers[0].mean), many.mean(axis=0), rtol=1e-6)


def test_augmenter(tmp_path):
    assert augmenter((), (8, 8, 1)) is None and augmenter([], (8, 8, 1)) is None
    model = augmenter(("crop8", "mirror"), IMAGES.shape[1:], seed=4)
    again = reload(model, tmp_path / "augmenter.keras")
    assert [layer.name for layer in again.layers] == ["crop8", "mirror"]
    assert [layer.seed for layer in again.layers] == [4, 5]
    for network in (model, again):
        np.testing.assert_array_equal(to_numpy(network(IMAGES)), IMAGES)
        assert not np.array_equal(to_numpy(network(IMAGES, training=True)), IMAGES)


def test_both_compute_in_float32_under_a_mixed_policy(digits):
    keras.config.set_dtype_policy("mixed_bfloat16")
    result = preprocessor(("scale", "gcn", "mean"), digits.x_train)(digits.x_test)
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    exact = IMAGES / np.float32(256) + 1  # needs more bits than bfloat16 has
    for steps in (("crop4",), ("crop8", "mirror")):
        model = augmenter(steps, IMAGES.shape[1:], seed=0)
        np.testing.assert_array_equal(to_numpy(model(exact)), exact)
        assert keras.backend.standardize_dtype(model(exact, training=True).dtype) == "float32"


@pytest.mark.parametrize(
    "steps", [("scale", "whiten"), "scale", ("scale", "scale"), 5, ("crop5",), ("mirror", "mirror")]
)
def test_bad_steps(digits, steps):
    with pytest.raises(ValueError, match="steps"):
        preprocessor(steps, digits.x_train)
    with pytest.raises(ValueError, match="steps"):
        augmenter(steps, (8, 8, 1))


def test_whole_model_fits_saves_and_predicts_from_raw_images(digits, tmp_path):
    inputs = keras.Input(digits.input_shape)
    x = preprocessor(("scale", "gcn", "mean", "half"), digits.x_train)(inputs)
    x = augmenter(("crop8", "mirror"), digits.input_shape, seed=0)(x)
    x = GlobalContrastNormalization(np.float32(0.5))(PadAndCrop(np.int64(3))(x))
    outputs = keras.layers.Dense(10, activation="softmax")(keras.layers.Flatten()(x))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(digits.x_train, digits.y_train, batch_size=64, verbose=0)  # the last batch is smaller
    again = reload(model, tmp_path / "whole.keras")
    expected = model.predict(digits.x_test, verbose=0)
    np.testing.assert_allclose(again.predict(digits.x_test, verbose=0), expected, atol=1e-6)
    assert np.isfinite(expected).all()
