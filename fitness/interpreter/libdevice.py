"""NVIDIA's device functions (``__nv_…``) as NumPy computes them: in float64, rounded once by the caller.

The hardware's own errors, one or two units in the last place, are not imitated. The fast variants are as
exact as the others here but for ``tanh``, whose fast form has eleven bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fitness.interpreter.foreign import Foreign
from fitness.interpreter.numbers import Array

Function = Callable[..., Array]

TANH_BITS = 11  # of tanh.approx: its relative error is at most 2 to the -11


def device_function(symbol: str) -> Function:
    """What a libdevice symbol computes, as a function of arrays.

    Raises:
        Foreign: it is in no table.
    """
    name = symbol.removeprefix("__nv_")
    for known in (name, name.removesuffix("f"), name.removeprefix("fast_").removesuffix("f")):
        if known in TABLE:
            return TABLE[known]
    raise Foreign(f"the device function {symbol} is not interpreted")


def approximate_tanh(x: Array) -> Array:
    """tanh with the precision of the hardware's instruction."""
    exact = np.tanh(x.astype(np.float64))
    mantissa, exponent = np.frexp(exact)
    return np.ldexp(np.round(mantissa * 2.0**TANH_BITS) / 2.0**TANH_BITS, exponent)


def _in_double(function: Callable[..., Any]) -> Function:
    def computed(*arguments: Array) -> Array:
        wide = (np.asarray(x).astype(np.float64) for x in arguments)
        return np.asarray(function(*wide))

    return computed


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    return _in_double(lambda x: function(torch.from_numpy(np.ascontiguousarray(x))).numpy())


def _each(function: Callable[..., float]) -> Function:
    def safe(*arguments: float) -> float:
        try:
            return function(*arguments)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return _in_double(np.vectorize(safe, otypes=[np.float64]))


def _away_from_zero(x: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5), x))


def _predicate(function: Callable[[Array], Array]) -> Function:
    return lambda x: function(x).astype(np.int32)


def _bits_as(kind: type[Any]) -> Function:
    return lambda x: x.view(kind)


def _population(x: Array) -> Array:
    return _by_bits(lambda n: n.bit_count(), x)


def _leading_zeros(x: Array) -> Array:
    width = x.dtype.itemsize * 8
    return _by_bits(lambda n: width - n.bit_length(), x)


def _first_set(x: Array) -> Array:
    return _by_bits(lambda n: (n & -n).bit_length(), x)


def _by_bits(function: Callable[[int], int], x: Array) -> Array:
    unsigned = x.view(np.dtype(f"uint{x.dtype.itemsize * 8}"))
    return np.asarray(np.vectorize(lambda n: function(int(n)), otypes=[np.int32])(unsigned))


_special = torch.special
_HALF = math.sqrt(0.5)

TABLE: dict[str, Function] = {
    # one to one with NumPy
    **{
        name: _in_double(getattr(np, name))
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan",
            "sinh", "cosh", "tanh", "hypot", "floor", "ceil", "trunc", "rint", "fmin", "fmax",
            "fmod", "copysign",
        )
    },
    "asin": _in_double(np.arcsin), "acos": _in_double(np.arccos), "atan": _in_double(np.arctan),
    "atan2": _in_double(np.arctan2), "asinh": _in_double(np.arcsinh), "acosh": _in_double(np.arccosh),
    "atanh": _in_double(np.arctanh), "pow": _in_double(np.power), "nearbyint": _in_double(np.rint),
    "exp10": _in_double(lambda x: np.power(10.0, x)), "fabs": _in_double(np.abs),
    "rsqrt": _in_double(lambda x: 1.0 / np.sqrt(x)), "rcbrt": _in_double(lambda x: 1.0 / np.cbrt(x)),
    "rhypot": _in_double(lambda x, y: 1.0 / np.hypot(x, y)),
    "sinpi": _in_double(lambda x: np.sin(np.pi * x)), "cospi": _in_double(lambda x: np.cos(np.pi * x)),
    "round": _in_double(_away_from_zero), "powi": _in_double(np.power),
    "fdim": _in_double(lambda x, y: np.fmax(x - y, 0.0)), "remainder": _each(math.remainder),
    "ldexp": lambda x, n: np.ldexp(x.astype(np.float64), n),
    "scalbn": lambda x, n: np.ldexp(x.astype(np.float64), n),
    "logb": _in_double(lambda x: np.frexp(x)[1] - 1.0), "ilogb": lambda x: np.frexp(x)[1] - 1,
    "nextafter": lambda x, y: np.nextafter(x, y),
    "saturate": _in_double(lambda x: np.clip(np.nan_to_num(x), 0, 1)),
    # rounding modes: to nearest alone
    "fma": _in_double(lambda x, y, z: x * y + z), "fmaf_rn": _in_double(lambda x, y, z: x * y + z),
    "fma_rn": _in_double(lambda x, y, z: x * y + z),
    **{f"{kind}{name}_rn": _in_double(op) for kind in "fd" for name, op in
       (("div", np.divide), ("mul", np.multiply), ("add", np.add), ("sub", np.subtract), ("sqrt", np.sqrt),
        ("rcp", np.reciprocal), ("rsqrt", lambda x: 1.0 / np.sqrt(x)))},
    "fdividef": _in_double(np.divide), "fdivide": _in_double(np.divide),
    # special functions
    "erf": _by_torch(_special.erf), "erfc": _by_torch(_special.erfc), "erfinv": _by_torch(_special.erfinv),
    "erfcinv": _by_torch(lambda x: _special.erfinv(1.0 - x)), "erfcx": _by_torch(_special.erfcx),
    "normcdf": _by_torch(lambda x: 0.5 * _special.erfc(-x * _HALF)), "normcdfinv": _by_torch(_special.ndtri),
    "lgamma": _by_torch(_special.gammaln), "tgamma": _each(math.gamma), "j0": _by_torch(_special.bessel_j0),
    "j1": _by_torch(_special.bessel_j1), "y0": _by_torch(_special.bessel_y0),
    "y1": _by_torch(_special.bessel_y1),
    "cyl_bessel_i0": _by_torch(_special.i0), "cyl_bessel_i1": _by_torch(_special.i1),
    "fast_tanhf": approximate_tanh,
    # questions about numbers, and about bits
    "isnanf": _predicate(np.isnan), "isnand": _predicate(np.isnan), "isinff": _predicate(np.isinf),
    "isinfd": _predicate(np.isinf), "finitef": _predicate(np.isfinite), "isfinited": _predicate(np.isfinite),
    "signbitf": _predicate(np.signbit), "signbitd": _predicate(np.signbit),
    "float_as_int": _bits_as(np.int32), "int_as_float": _bits_as(np.float32),
    "float_as_uint": _bits_as(np.uint32), "uint_as_float": _bits_as(np.float32),
    "double_as_longlong": _bits_as(np.int64), "longlong_as_double": _bits_as(np.float64),
    "popc": _population, "popcll": _population, "clz": _leading_zeros, "clzll": _leading_zeros,
    "ffs": _first_set, "ffsll": _first_set, "abs": np.abs, "llabs": np.abs,
    "float2int_rn": np.rint, "float2int_rz": np.trunc, "float2int_rd": np.floor, "float2int_ru": np.ceil,
    "float2uint_rn": np.rint, "float2uint_rz": np.trunc, "float2ll_rn": np.rint, "float2ll_rz": np.trunc,
    "int2float_rn": _in_double(lambda x: x), "uint2float_rn": _in_double(lambda x: x),
    "llrint": np.rint, "llround": _away_from_zero,
}  # fmt: skip
