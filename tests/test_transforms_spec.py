# SPDX-License-Identifier: Apache-2.0
"""Specs as text: what is read, what is refused, where a fault is marked, and canonical text."""

from __future__ import annotations

import locale
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_by_ctypes import Spec, SpecError

CANONICAL = [
    ("", ""),
    (" \n\t ", ""),
    ("resize(256)", "resize(size=256,interpolation=bilinear,max_size=none)"),
    ("resize((256))", "resize(size=256,interpolation=bilinear,max_size=none)"),
    ("resize( [ 20 , 30 ] , bicubic )", "resize(size=(20,30),interpolation=bicubic,max_size=none)"),
    ("resize(max_size=300, size=256)", "resize(size=256,interpolation=bilinear,max_size=300)"),
    ("center_crop(224)", "center_crop(size=(224,224))"),
    (
        "random_crop(32)",
        "random_crop(size=(32,32),padding=(0,0,0,0),pad_if_needed=false,fill=(0,0,0),padding_mode=constant)",
    ),
    (
        "random_crop(32,4,true,7,reflect)",
        "random_crop(size=(32,32),padding=(4,4,4,4),pad_if_needed=true,fill=(7,7,7),padding_mode=reflect)",
    ),
    ("pad((1,2))", "pad(padding=(1,2,1,2),fill=(0,0,0),padding_mode=constant)"),
    ("pad([1,2,3,4],(9,8,7))", "pad(padding=(1,2,3,4),fill=(9,8,7),padding_mode=constant)"),
    ("random_horizontal_flip()", "random_horizontal_flip(p=0.5)"),
    ("random_vertical_flip(1e-1)", "random_vertical_flip(p=0.10000000000000001)"),
    ("grayscale", "grayscale(num_output_channels=1)"),
    ("to_tensor", "to_tensor"),
    ("to(f16)", "to(dtype=f16,layout=nchw)"),
    (
        "random_resized_crop(224)",
        "random_resized_crop(size=(224,224),scale=(0.080000000000000002,1),"
        "ratio=(0.75,1.3333333333333333),interpolation=bilinear)",
    ),
    ("normalize(-.5, +0.5)", "normalize(mean=(-0.5),std=(0.5))"),
    ("to_tensor\n  random_horizontal_flip", "to_tensor random_horizontal_flip(p=0.5)"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_text(text: str, canonical: str) -> None:
    assert Spec(text).text == canonical
    assert Spec(canonical).text == canonical


@pytest.mark.parametrize(
    ("text", "dtype", "layout"),
    [
        ("", "u8", "nhwc"),
        ("center_crop(2)", "u8", "nhwc"),
        ("to_tensor", "f32", "nchw"),
        ("normalize(imagenet)", "f32", "nchw"),
        ("to(u8)", "u8", "nchw"),
        ("normalize(imagenet) to(bf16,nhwc)", "bf16", "nhwc"),
    ],
)
def test_what_comes_out(text: str, dtype: str, layout: str) -> None:
    assert (Spec(text).dtype, Spec(text).layout) == (dtype, layout)


FAULTS = [
    ("resise(256)", "unknown transform 'resise' at column 1: >>resise<<(256)"),
    ("center_crop(2) flip", "unknown transform 'flip' at column 16: center_crop(2) >>flip<<"),
    ("resize", "resize needs the argument 'size' at column 1: >>resize<<"),
    ("resize(0)", "at column 8: resize(>>0<<)"),
    ("resize(-3)", "at column 8"),
    ("resize(2.5)", "at column 8"),
    ("resize(1e99)", "at column 8"),
    ("resize((1,2,3))", "at column 8"),
    ("resize(256,bilinear,128)", "a max_size greater than size at column 21: resize(256,bilinear,>>128<<)"),
    ("resize((2,3),max_size=9)", "no max_size beside a (height,width) at column 14"),
    ("resize(3,interpolation=cubic)", "at column 10: resize(3,>>interpolation=cubic<<)"),
    ("resize(3,interpolation=nearest-exact)", "at column 10"),
    ("center_crop(2,3)", "center_crop takes no more arguments at column 15: center_crop(2,>>3<<)"),
    ("random_crop(32,foo=1)", "random_crop has no argument 'foo' at column 16: random_crop(32,>>foo<<=1)"),
    ("random_crop(32,size=3)", "argument 'size' is given twice at column 16"),
    ("random_crop(32,padding=(1,2,3))", "at column 16"),
    ("random_crop(32,fill=256)", "at column 16"),
    ("random_crop(32,pad_if_needed=maybe)", "true or false at column 16"),
    ("pad(1,padding_mode=wrap)", "constant, edge, reflect or symmetric at column 7"),
    ("random_horizontal_flip(1.5)", "a probability 0..1 at column 24"),
    ("random_horizontal_flip(nan)", "at column 24"),
    ("random_resized_crop(9,scale=(1,0.5))", "at column 23"),
    ("random_resized_crop(9,ratio=(0,1))", "0 < low <= high at column 23"),
    ("grayscale(2)", "1 or 3 at column 11"),
    ("normalize", "normalize needs the argument 'mean'"),
    ("normalize(0.5)", "normalize needs the argument 'std'"),
    ("normalize(imagnet)", "at column 11: normalize(>>imagnet<<)"),
    ("normalize(imagenet,0.5)", "no std beside a preset's name at column 20"),
    ("normalize((1,2),(3,4))", "1 or 3 numbers at column 11"),
    ("normalize((1,2,3),(1,2,0))", "a std that is not 0 and fits float32 at column 19"),
    ("normalize(1,1e-60)", "at column 13"),
    ("normalize(1e60,1)", "at column 11"),
    ("to", "to needs the argument 'dtype'"),
    ("to(f64)", "u8, f16, bf16 or f32 at column 4"),
    ("to(f32,chw)", "nchw or nhwc at column 8"),
    ("resize((1,2)", "bracket is not closed at column 7"),
    ("resize((1,2", "bracket is not closed at column 8"),
    ("resize(1/0)", "not a fraction at column 8"),
    ("resize(1 2)", "',' or ')' is missing at column 10"),
    ("resize(,)", "a value is missing at column 8"),
    ("(3)", "a transform's name is missing at column 1"),
    ("to(f32) random_horizontal_flip", "nothing can follow to: random_horizontal_flip at column 9"),
    ("to(u8) to(f32)", "nothing can follow to"),
    ("to_tensor to_tensor", "to_tensor after to_tensor or normalize at column 11"),
    ("normalize(imagenet) to_tensor", "to_tensor after to_tensor or normalize"),
    ("to_tensor to(u8)", "to(u8) after to_tensor or normalize"),
    ("to_tensor resize(3)", "resize must stand before to_tensor and normalize at column 11: to_tensor >>resize<<(3)"),
    ("to_tensor random_resized_crop(3)", "random_resized_crop must stand before"),
    ("to_tensor grayscale", "grayscale must stand before"),
    ("to_tensor pad(1,fill=3)", "pad must stand before"),
    ("normalize(imagenet) pad(1)", "pad must stand before"),
    ("normalize(imagenet) center_crop(3)", "center_crop must stand before"),
    ("normalize(imagenet) random_crop(3,pad_if_needed=true)", "random_crop must stand before"),
    ("grayscale " * 33, "more than 32 transforms"),
    ("resize(3) \x01", "at column 11"),
    ("resize(3)é", "at column 10"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_faults_are_marked(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        Spec(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_text_is_shown_around_the_fault_only() -> None:
    with pytest.raises(SpecError) as caught:
        Spec("grayscale " * 20 + "ä" * 400 + " grayscale" * 200)
    assert "a transform's name is missing at column 201: ...grayscale" in str(caught.value)
    assert len(str(caught.value)) < 700


def test_another_locale_changes_no_number() -> None:
    """Programs set locales whose decimal point is a comma."""
    text = Spec("random_horizontal_flip(0.25) normalize(0.5,1.5)").text
    before = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            continue
        try:
            assert Spec(text).text == text
        finally:
            locale.setlocale(locale.LC_ALL, before)
        return
    pytest.skip("no locale with a decimal comma is installed")


@pytest.mark.parametrize(
    "text",
    [
        "to_tensor random_crop(3,padding=1)",
        "to_tensor center_crop(3)",
        "to_tensor pad(1,fill=0)",
        "normalize(imagenet) random_crop(3)",
        "normalize(imagenet) pad(1,padding_mode=edge)",
        "normalize(imagenet) random_horizontal_flip normalize(0.5,0.5) to(f16)",
        "random_resized_crop(9,scale=(0,1))",
        "random_resized_crop(9,scale=(0.5,0.5),ratio=(1,1))",
    ],
)
def test_orders_and_ranges_that_have_a_meaning(text: str) -> None:
    Spec(text)


def test_every_line_of_the_page_is_read() -> None:
    """docs/transforms.md names arguments that the parser knows, in the parser's order."""
    page = (Path(__file__).parent.parent / "docs" / "transforms.md").read_text(encoding="utf-8")
    fill_in = {"size": "9", "padding": "2", "mean": "0.5", "std": "0.5", "dtype": "u8", "name": "mnist"}
    seen = 0
    for name, arguments in re.findall(r"`([a-z_0-9]+)\(([a-z][^`]*)\)`", page):
        values = re.sub(r"^([a-z_]+)(?=,|$)|(?<=, )([a-z_]+)(?=,|$)", lambda m: fill_in[m.group(0)], arguments)
        Spec(f"{name}({values})")
        seen += 1
    assert seen == 12


@given(st.text(max_size=60))
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_spec_or_a_clear_error(text: str) -> None:
    try:
        canonical = Spec(text.replace("\0", " ")).text
    except SpecError as error:
        assert "at column" in str(error)
    else:
        assert Spec(canonical).text == canonical


PIECES = """resize center_crop random_crop pad random_resized_crop random_horizontal_flip random_vertical_flip grayscale
to_tensor normalize to ( ) [ ] , = size padding fill scale ratio p mean std none true imagenet bilinear reflect
u8 f32 nhwc 0 1 3 32 0.5 3/4 1e3 -2 1e-9 99999999999"""


@given(st.lists(st.sampled_from(PIECES.split()), max_size=14), st.sampled_from(["", " "]))
@settings(max_examples=1500, deadline=None)
def test_pieces_of_specs_in_any_order(pieces: list[str], between: str) -> None:
    """What the parser accepts also runs, or says why not, on an image of any size."""
    try:
        spec = Spec(between.join(pieces))
    except SpecError as error:
        assert "at column" in str(error)
        return
    assert Spec(spec.text).text == spec.text
    for height, width, channels in ((1, 1, 3), (5, 4, 1)):
        try:
            if "000" not in spec.text:  # sizes that would only take time
                spec.apply(np.zeros((height, width, channels), np.uint8), spec.draw(0, 0, 0, width, height))
        except SpecError as error:
            assert str(error)
