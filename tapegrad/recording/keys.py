"""Compiled: the key of a call, and the table in which the call's plan is found by its key.

A key consists of words: the operands' layouts, and the arguments that decide what is computed. Each op has a table;
`tapegrad.recording.plan_cache` fills it, with the same keys, made in Python.
"""

from __future__ import annotations

from typing import Final

from tapegrad.compiler.intrinsics import stack
from tapegrad.recording.native import integer_or_overflow
from tapegrad.recording.objects import PlanObject, Runtime, TensorObject, is_tensor
from tapegrad.runtime.objects import C_CONTIGUOUS, NDArray, Object, Scalar, Slice, Tuple
from tapegrad.runtime.structs import WORD, Array, Struct, Table, embedded, sizeof
from tapegrad.tape.structs import PlanFields

# Flags of an op: the first argument is a list or tuple of the operands; arguments may be index arrays; the result may
# be a view of the operand.
SEQUENCE_OF_OPERANDS, TAKES_ARRAYS, MAKES_VIEWS = 1, 2, 4

KEY_WORDS: Final = 28
LONGEST_KEY: Final = KEY_WORDS - 4  # compiled code needs room for a slice whenever it adds an argument
TOO_LONG: Final = KEY_WORDS + 1  # in place of a key's length
KEYWORDS: Final = 2  # the word before names and values; no object and no integer has it
HASH: Final = 0x1E3779B97F4A7C15  # odd: words that are near to one another get high bits that are far apart
PLACES: Final = 36  # the bit of a hash from which on it is the first place of a key, ...
PLACES_APART: Final = 12  # ... and how far behind it the second begins
MAX_ARRAYS: Final = 4  # index arrays of one call
MAX_ITEMS: Final = 24  # operands in a list


class Bucket(Struct):
    """A bucket of an op's table: a plan, and the key of its calls. A short key makes it fit into a cache line."""

    plan: PlanObject
    plan_fields: PlanFields
    floats: int  # a bit for each operand that is an int and becomes a float
    length: int  # of the key; 0 if the bucket is empty
    key: Array[int] = embedded(KEY_WORDS)  # the operands' layouts, then arguments as `add_argument` appends them


class OpFields(Struct):
    """The words of an op for compiled code."""

    runtime: Runtime
    n_operands: int  # 0 for `finish`, which is no op
    n_arguments: int  # the most other arguments
    table: Table[Bucket]
    n_buckets: int  # a power of 2
    fallback: Object  # called if the table has no plan
    reflected: Object  # of a call that has the two operands in reverse, as ``__rsub__`` does: its function in Python
    flags: int
    plans: Object  # the op's `PlanCache`


BUCKET_WORDS: Final = sizeof(Bucket) // WORD
OP_WORDS: Final = sizeof(OpFields) // WORD


class Objects(Struct):
    """A list of a few objects."""

    count: int
    items: Array[Object] = embedded(MAX_ITEMS)


def integer_word(value: Object) -> int:
    """Return an odd word for a Python integer; the address of its object if it is too large."""
    overflow = Array[int](stack(8))
    overflow[0] = 0
    number = integer_or_overflow(value, overflow)
    return number << 1 | 1 if overflow[0] == 0 and number << 1 >> 1 == number else value


def add_word(runtime: Runtime, key: Array[int], length: int, value: Object) -> int:
    """Append an argument that is no tuple, slice or array; return the new length of the key.

    An integer becomes an odd word, a float its type and its bits. Any other object becomes its address: in a key of the
    table it is an object that cannot change, and the table holds it.
    """
    kind = value.type
    if kind == runtime.int_type:
        word = integer_word(value)
    elif kind == runtime.float_type:
        key[length] = kind
        length += 1
        word = Scalar(value).value[0]
    else:
        word = value
    key[length] = word
    return length + 1


def add_array(runtime: Runtime, key: Array[int], length: int, array: NDArray, arrays: Objects) -> int:
    """Append the dtype and the shape of an index array to the key, and the array to `arrays`; return the new length."""
    if array == 0:  # the data of a tensor, which were deleted
        return TOO_LONG
    count, ndim = arrays.count, array.ndim
    is_contiguous = array.type == runtime.array_type and array.flags & C_CONTIGUOUS
    if count >= MAX_ARRAYS or is_contiguous == 0 or length + 3 + ndim > KEY_WORDS:
        return TOO_LONG
    arrays.items[count] = array
    arrays.count = count + 1
    key[length] = runtime.array_type
    key[length + 1] = array.dtype
    key[length + 2] = ndim
    for dim in range(ndim):
        key[length + 3 + dim] = array.shape[dim]
    return length + 3 + ndim


def add_items(runtime: Runtime, key: Array[int], length: int, items: Array[Object], count: int, arrays: Objects) -> int:
    """Append objects, which may be slices and arrays; return the new length, or TOO_LONG."""
    for index in range(count):
        if length + 4 > KEY_WORDS:
            return TOO_LONG
        value = items[index]
        kind = value.type
        if kind == runtime.slice_type:
            key[length] = kind
            length += 1
            bounds = Slice(value).items
            for bound in range(3):
                if bounds[bound].type == runtime.float_type:
                    return TOO_LONG
                length = add_word(runtime, key, length, bounds[bound])
        elif arrays != 0 and kind == runtime.array_type:
            length = add_array(runtime, key, length, NDArray(value), arrays)
        elif arrays != 0 and is_tensor(runtime, kind):
            length = add_array(runtime, key, length, TensorObject(value).data, arrays)
        else:
            length = add_word(runtime, key, length, value)
    return length


def add_argument(runtime: Runtime, key: Array[int], length: int, value: Object, arrays: Objects) -> int:
    """Append an argument; return the new length, or TOO_LONG.

    Index arrays are appended to `arrays` too, which is 0 if the op takes none.
    """
    if length > KEY_WORDS:
        return length
    if value.type != runtime.tuple_type:
        single = Array[Object](stack(8))
        single[0] = value
        return add_items(runtime, key, length, single, 1, arrays)
    if length + 2 > KEY_WORDS:
        return TOO_LONG
    key[length] = runtime.tuple_type
    key[length + 1] = Tuple(value).length
    return add_items(runtime, key, length + 2, Tuple(value).items, Tuple(value).length, arrays)


def add_keywords(
    runtime: Runtime, key: Array[int], length: int, names: Tuple, values: Array[Object], arrays: Objects
) -> int:
    """Append keyword arguments; return the new length, or TOO_LONG."""
    if length + 1 > KEY_WORDS:
        return TOO_LONG
    key[length] = KEYWORDS
    length += 1
    for index in range(names.length):
        if length + 1 > KEY_WORDS:
            return TOO_LONG
        key[length] = names.items[index]
        length = add_argument(runtime, key, length + 1, values[index], arrays)
    return length


def has_key(bucket: Bucket, key: Array[int], length: int) -> int:
    """Whether a bucket has this key."""
    if bucket.length != length:
        return 0
    for index in range(length):
        if bucket.key[index] != key[index]:
            return 0
    return 1


def find_bucket(op: OpFields, key: Array[int], length: int) -> Bucket:
    """Return the bucket with this key, which may be in two places; 0 if there is none."""
    hashed = 0
    for index in range(length):
        hashed = (hashed + key[index]) * HASH
    for place in range(2):
        bucket = op.table[hashed >> PLACES + place * PLACES_APART & (op.n_buckets - 1)]
        if has_key(bucket, key, length) != 0:
            return bucket
    return Bucket(0)
