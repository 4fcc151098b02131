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


@pytest.fixture(scope="module")
def digits():
    return load("digits", limit=300)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(1, 256, (60, 12, 10, 3), "uint8")


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def reload(model, path):
    model.save(path)
    return keras.models.load_model(path)


def gcn(x):
    x = x.astype("float64")
    axes = (1, 2, 3)
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


# GlobalContrastNormalization


@pytest.mark.parametrize("scale", [1, 1 / 256])
def test_gcn_equals_numpy(images, scale):
    result = to_numpy(GlobalContrastNormalization()(images * np.float32(scale)))
    np.testing.assert_allclose(result, gcn(images), atol=1e-5)


def test_gcn_takes_raw_uint8(images):
    np.testing.assert_allclose(
        to_numpy(GlobalContrastNormalization()(images)), gcn(images), atol=1e-5
    )


@pytest.mark.parametrize("scale", [1, 1 / 256])
def test_gcn_of_one_colour_is_zero(scale):
    flat = np.full((2, 32, 32, 3), 251, "float32") * np.float32(scale)
    assert np.abs(to_numpy(GlobalContrastNormalization()(flat))).max() < 0.02


def test_gcn_in_half_precision_keeps_its_statistics(images):
    layer = GlobalContrastNormalization(dtype="mixed_bfloat16")
    result = layer(images)
    assert keras.backend.standardize_dtype(result.dtype) == "bfloat16"
    exact = gcn(images)
    np.testing.assert_allclose(to_numpy(result).astype("float32"), exact, atol=2**-7 * 2)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), "1e-3", None])
def test_gcn_epsilon_must_be_positive(epsilon):
    with pytest.raises(ValueError, match=r"`epsilon` must be a number above 0. Received: epsilon="):
        GlobalContrastNormalization(epsilon=epsilon)


# MeanImage


def test_mean_image_adapts_to_an_array_or_batches(images):
    expected = images - images.mean(axis=0)
    for data in (images, [images[:7], images[7:]], iter([images])):
        layer = MeanImage()
        layer.adapt(data)
        np.testing.assert_allclose(to_numpy(layer(images)), expected, atol=1e-4)


def test_mean_image_is_identity_before_adapt_and_does_not_train(images):
    layer = MeanImage()
    np.testing.assert_array_equal(to_numpy(layer(images)), images)
    assert len(layer.non_trainable_weights) == 1 and not layer.trainable_weights


def test_mean_image_can_adapt_again(images):
    layer = MeanImage()
    layer.adapt(images)
    layer.adapt(images[:5])
    np.testing.assert_allclose(to_numpy(layer.mean), images[:5].mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize("data", [[], np.zeros((0, 4, 4, 1))])
def test_mean_image_needs_data(data):
    with pytest.raises(ValueError, match="`data` must hold at least one image"):
        MeanImage().adapt(data)


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


def test_crop_shifts_every_image_on_its_own(images):
    result = to_numpy(PadAndCrop(pad=2, seed=1)(images, training=True))
    found = [shifts(image, crop, 2) for image, crop in zip(images, result, strict=True)]
    assert all(len(positions) == 1 for positions in found)
    assert len({positions[0] for positions in found}) > 15  # of 25, in 60 draws


def test_crop_positions_are_uniform():
    image = np.arange(1, 10, dtype="float32").reshape(1, 3, 3, 1)
    batch = np.repeat(image, 4500, axis=0)
    result = to_numpy(PadAndCrop(pad=1, seed=0)(batch, training=True))
    centres = result[:, 1, 1, 0].astype(int)  # 1..9: which pixel came to the centre
    counts = np.bincount(centres, minlength=10)[1:]
    assert counts.sum() == 4500 and (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


@pytest.mark.parametrize("pad", [0, -1, 2.0, "8", True, None])
def test_crop_pad_must_be_a_positive_integer(pad):
    with pytest.raises(ValueError, match=r"`pad` must be a positive integer. Received: pad="):
        PadAndCrop(pad=pad)


def test_numbers_of_numpy_are_taken_and_saved(images, tmp_path):
    layers = [PadAndCrop(np.int64(3), seed=0), GlobalContrastNormalization(np.float32(0.5))]
    model = keras.Sequential([keras.Input(images.shape[1:]), *layers])
    crop, gcn = reload(model, tmp_path / "numpy.keras").layers
    assert (crop.pad, gcn.epsilon) == (3, 0.5)


def test_mirror_flips_about_half_of_the_images_each(images):
    result = to_numpy(Mirror(seed=0)(images, training=True))
    pairs = list(zip(result, images, strict=True))
    flipped = np.array([np.array_equal(new, old[:, ::-1]) for new, old in pairs])
    kept = np.array([np.array_equal(new, old) for new, old in pairs])
    assert (flipped ^ kept).all() and 15 < flipped.sum() < 45


@pytest.mark.parametrize("layer_class", [PadAndCrop, Mirror])
def test_random_layers_are_the_identity_at_inference(layer_class, images):
    layer = layer_class()
    for result in (layer(images), layer(images, training=False)):
        np.testing.assert_array_equal(to_numpy(result), images)


@pytest.mark.parametrize("layer_class", [PadAndCrop, Mirror])
def test_random_layers_repeat_with_their_seed(layer_class, images):
    first, second = (layer_class(seed=3) for _ in range(2))
    draws = [to_numpy(layer(images, training=True)) for layer in (first, second, first, second)]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[2], draws[3])
    assert not np.array_equal(draws[0], draws[2])


@pytest.mark.parametrize("layer_class", [PadAndCrop, Mirror])
def test_random_layers_need_rank_4(layer_class):
    with pytest.raises(ValueError, match=r"must be images of shape .* Received: shape=\(8, 8, 1\)"):
        layer_class()(np.zeros((8, 8, 1)))


# All layers


@pytest.mark.parametrize(
    ("layer_class", "arguments"),
    [
        (GlobalContrastNormalization, {"epsilon": 0.5}),
        (MeanImage, {}),
        (PadAndCrop, {"pad": 3, "seed": 5}),
        (Mirror, {"seed": 5}),
    ],
)
def test_config_and_shape(layer_class, arguments, images):
    layer = layer_class(**arguments)
    config = layer.get_config()
    again = layer_class.from_config(config)
    assert again.get_config() == config
    assert {key: config[key] for key in arguments} == arguments
    assert layer.compute_output_shape(images.shape) == images.shape
    assert layer(keras.Input(images.shape[1:])).shape == (None, *images.shape[1:])


# preprocessor, augmenter


def test_scale_is_one_256th(digits):
    result = to_numpy(preprocessor(("scale",), digits.x_train)(digits.x_test))
    np.testing.assert_array_equal(result, digits.x_test / np.float32(256))


def test_preprocessor_adapts_to_training_images_only(digits):
    model = preprocessor(("scale", "gcn", "mean", "half"), digits.x_train)
    mean = gcn(digits.x_train).mean(axis=0)
    result = to_numpy(model(digits.x_test))
    np.testing.assert_allclose(result, (gcn(digits.x_test) - mean) / 2, atol=1e-5)


def test_preprocessor_adapts_in_batches(monkeypatch):
    many = np.random.default_rng(0).integers(0, 256, (2500, 3, 3, 1), "uint8")
    sizes, adapt = [], MeanImage.adapt

    def noted(layer, batches):
        batches = list(batches)
        sizes.extend(map(len, batches))
        adapt(layer, batches)

    monkeypatch.setattr(MeanImage, "adapt", noted)
    model = preprocessor(("mean",), many)
    assert sizes == [1000, 1000, 500]
    np.testing.assert_allclose(to_numpy(model.layers[0].mean), many.mean(axis=0), rtol=1e-6)


def test_preprocessor_outputs_float32_under_a_mixed_policy(digits):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = preprocessor(("scale", "gcn", "mean"), digits.x_train)
        result = model(digits.x_test)
    finally:
        keras.config.set_dtype_policy("float32")
    assert keras.backend.standardize_dtype(result.dtype) == "float32"


@pytest.mark.parametrize("steps", [("crop4",), ("crop8", "mirror")])
def test_augmenter_computes_in_float32_under_a_mixed_policy(images, steps):
    keras.config.set_dtype_policy("mixed_bfloat16")
    exact = images / np.float32(256) + 1  # needs more bits than bfloat16 has
    model = augmenter(steps, images.shape[1:], seed=0)
    np.testing.assert_array_equal(to_numpy(model(exact)), exact)
    assert keras.backend.standardize_dtype(model(exact, training=True).dtype) == "float32"


def test_preprocessor_survives_saving(digits, tmp_path):
    model = preprocessor(("scale", "gcn", "mean", "half"), digits.x_train)
    again = reload(model, tmp_path / "preprocessor.keras")
    np.testing.assert_array_equal(to_numpy(again(digits.x_test)), to_numpy(model(digits.x_test)))


def test_augmenter_works_in_training_only(images):
    model = augmenter(("crop8", "mirror"), images.shape[1:], seed=0)
    np.testing.assert_array_equal(to_numpy(model(images)), images)
    assert not np.array_equal(to_numpy(model(images, training=True)), images)


def test_augmenter_survives_saving(images, tmp_path):
    model = augmenter(("crop8", "mirror"), images.shape[1:], seed=4)
    again = reload(model, tmp_path / "augmenter.keras")
    assert [layer.name for layer in again.layers] == ["crop8", "mirror"]
    assert [layer.seed for layer in again.layers] == [4, 5]
    np.testing.assert_array_equal(to_numpy(again(images)), images)


def test_preprocessor_without_steps_leaves_grey_levels(digits):
    model = preprocessor((), digits.x_train)
    np.testing.assert_array_equal(to_numpy(model(digits.x_test)), digits.x_test.astype("float32"))
    assert model.compute_dtype == "float32"


def test_augmenter_without_steps_is_none():
    assert augmenter((), (8, 8, 1)) is None


@pytest.mark.parametrize("steps", [("scale", "whiten"), "scale", ("scale", "scale"), 5])
def test_preprocessor_with_bad_steps(digits, steps):
    with pytest.raises(
        ValueError, match=r"`steps` must be .* 'scale', 'gcn', 'mean', 'half', each at most"
    ):
        preprocessor(steps, digits.x_train)


@pytest.mark.parametrize("steps", [("crop5",), "mirror", ("mirror", "mirror")])
def test_augmenter_with_bad_steps(steps):
    with pytest.raises(
        ValueError, match=r"`steps` must be .* 'crop8', 'mirror', each at most once"
    ):
        augmenter(steps, (8, 8, 1))


def test_whole_model_fits_saves_and_predicts_from_raw_images(digits, tmp_path):
    inputs = keras.Input(digits.input_shape)
    x = preprocessor(("scale", "gcn", "mean"), digits.x_train)(inputs)
    x = augmenter(("crop8", "mirror"), digits.input_shape, seed=0)(x)
    outputs = keras.layers.Dense(10, activation="softmax")(keras.layers.Flatten()(x))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(digits.x_train, digits.y_train, batch_size=64, verbose=0)  # the last batch is smaller
    again = reload(model, tmp_path / "whole.keras")
    expected = model.predict(digits.x_test, verbose=0)
    np.testing.assert_allclose(again.predict(digits.x_test, verbose=0), expected, atol=1e-6)
    assert np.isfinite(expected).all()
