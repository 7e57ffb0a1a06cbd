"""The mutation operators: those of cosmic-ray that make plausible mistakes, and six of our own."""

from collections.abc import Iterator

import cosmic_ray.plugins
import parso
from cosmic_ray.operators.operator import Operator

# cosmic-ray replaces each operator by every other one. Most of these mutants fail at once.
_REPLACED = {
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Div", "Add"),
    "Div": ("Mul",),
    "FloorDiv": ("Mul", "Div"),
    "Mod": ("FloorDiv",),
    "Pow": ("Mul",),
    "BitAnd": ("BitOr",),
    "BitOr": ("BitAnd",),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Lt": ("LtE", "Gt"),
    "LtE": ("Lt", "GtE"),
    "Gt": ("GtE", "Lt"),
    "GtE": ("Gt", "LtE"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
_OTHERS = (
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "AddNot",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "RemoveDecorator",
    "ZeroIterationForLoop",
)
# Their results can stand in for their arguments, so that a mutant without them still runs.
_UNWRAPPED = frozenset(
    ("abs", "cast", "ceil", "clip", "exp", "expm1", "flip", "floor", "log", "log1p", "lower")
    + ("lstrip", "max", "maximum", "min", "minimum", "relu", "reversed", "round", "rstrip")
    + ("softmax", "sorted", "sqrt", "square", "stop_gradient", "strip", "zeros_like")
)


# Keyword arguments that change no result, or none in the environments of the tests.
_IDLE = frozenset(("encoding", "frozen", "name", "prefix", "stacklevel", "strict"))


def _arguments(node: parso.tree.NodeOrLeaf) -> list:
    """The arguments of a call, in order; empty where `node` is no call."""
    if node.type != "trailer" or node.children[0].value != "(" or len(node.children) != 3:
        return []
    inside = node.children[1]
    if inside.type != "arglist":
        return [inside]
    return [child for child in inside.children if child.type != "operator" or child.value != ","]


def _is_keyword_argument(node: parso.tree.NodeOrLeaf) -> bool:
    return (
        node.type == "argument"
        and node.children[1].type == "operator"
        and (node.children[1].value == "=")
    )


def _is_augmented(node: parso.tree.NodeOrLeaf) -> bool:
    """Whether an assignment is one such as `+=`."""
    return getattr(node.children[1], "value", "=") != "="


def _replace(node: parso.tree.BaseNode, code: str) -> parso.tree.NodeOrLeaf:
    """A node of `code` in the place of `node`, whose prefix it gets."""
    prefix = node.get_first_leaf().prefix
    replaced = parso.parse(prefix + code)
    replaced.parent = node.parent
    return replaced


class _Replacement(Operator):
    """An operator that replaces a node by other code, in one or more ways."""

    def codes(self, node: parso.tree.NodeOrLeaf) -> Iterator[str]:
        raise NotImplementedError

    def mutation_positions(self, node):
        for _ in self.codes(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        return _replace(node, list(self.codes(node))[index])

    @classmethod
    def examples(cls):
        return ()


class ConstantCondition(_Replacement):
    """A guard that never or always holds: `if a:` becomes `if False:` and `if True:`."""

    def codes(self, node):
        parent = node.parent
        if parent is None or parent.type not in ("if_stmt", "test"):
            return
        place = parent.children.index(node)
        before = parent.children[place - 1] if place else None
        if before is not None and before.type == "keyword" and before.value in ("if", "elif"):
            yield "False"
            yield "True"


class RemoveStatement(_Replacement):
    """A call whose result is not used, or an augmented assignment, becomes `pass`."""

    def codes(self, node):
        if node.parent is None or node.parent.type != "simple_stmt":
            return
        is_call = node.type == "atom_expr" and node.children[-1].type == "trailer"
        if is_call or (node.type == "expr_stmt" and _is_augmented(node)):
            yield "pass"


class UnwrapCall(_Replacement):
    """`stop_gradient(x)` becomes `x`, and so do other functions that keep the type."""

    def codes(self, node):
        if node.type not in ("atom_expr", "power"):
            return
        *path, call = node.children
        arguments = _arguments(call)
        name = path[-1].children[-1] if path[-1].type == "trailer" else path[-1]
        if getattr(name, "value", None) not in _UNWRAPPED:
            return
        if arguments and arguments[0].type not in ("argument", "operator"):
            yield f"({arguments[0].get_code(include_prefix=False)})"


class DropKeyword(_Replacement):
    """`sum(x, axis=1)` becomes `sum(x)`: one keyword argument less."""

    def codes(self, node):
        arguments = _arguments(node)
        for dropped in arguments:
            if _is_keyword_argument(dropped) and dropped.children[0].value not in _IDLE:
                kept = (other.get_code().strip() for other in arguments if other is not dropped)
                yield f"({', '.join(kept)})"


class SwapArguments(_Replacement):
    """`where(a, b, c)` becomes `where(b, a, c)` and `where(a, c, b)`."""

    def codes(self, node):
        arguments = _arguments(node)
        texts = [argument.get_code().strip() for argument in arguments]
        for place in range(len(texts) - 1):
            pair = arguments[place : place + 2]
            if any(argument.type == "argument" for argument in pair):
                return
            swapped = [*texts]
            swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
            if swapped != texts:
                yield f"({', '.join(swapped)})"


class DropOperand(_Replacement):
    """`a * b` becomes `a` and `b`; sums, differences, `and` and `or` likewise."""

    def codes(self, node):
        if (
            node.type not in ("term", "arith_expr", "and_test", "or_test")
            or len(node.children) != 3
        ):
            return
        if getattr(node.children[1], "value", None) in ("*", "+", "-", "and", "or", "/"):
            yield node.children[0].get_code().strip()
            if node.children[1].value != "/":
                yield node.children[2].get_code().strip()


OWN = {
    operator.__name__: operator
    for operator in (
        ConstantCondition,
        RemoveStatement,
        UnwrapCall,
        DropKeyword,
        SwapArguments,
        DropOperand,
    )
}


def operator_named(name: str) -> Operator:
    """An operator of our own or of cosmic-ray."""
    return OWN[name]() if name in OWN else cosmic_ray.plugins.get_operator(f"core/{name}")()


def operator_names() -> list[str]:
    """The operators that are used, in a fixed order."""
    kinds = {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot"}
    replaced = [
        f"Replace{'Comparison' if one in kinds else 'Binary'}Operator_{one}_{other}"
        for one, others in _REPLACED.items()
        for other in others
    ]
    return [*replaced, *_OTHERS, *OWN]


def _is_last_axis(node: parso.tree.NodeOrLeaf) -> bool:
    """Whether a node is the -1 of `axis=-1`, or of `x.shape[-1]`: of a matrix that is 1 as well."""
    if node.get_code().strip() != "-1" or node.type != "factor":
        return False
    before = node.get_previous_sibling()
    return before is not None and getattr(before, "value", None) in ("=", "[")


def _texts(fstring: parso.tree.NodeOrLeaf) -> Iterator[str]:
    return (child.value for child in fstring.children if child.type == "fstring_string")


def is_mutated(node: parso.tree.NodeOrLeaf) -> bool:
    """Whether a mutant of `node` can be told from the original.

    Type hints, messages of errors and warnings, imports and assertions cannot.
    """
    child = node
    if node.type == "assert_stmt" or _is_last_axis(node):
        return False
    while child.parent is not None:
        parent = child.parent
        if parent.type in ("raise_stmt", "import_from", "import_name", "assert_stmt"):
            return False
        if parent.type == "annassign" and child is parent.children[1]:
            return False
        if parent.type == "tfpdef" and child is not parent.children[0]:
            return False
        if parent.type == "funcdef" and child is getattr(parent, "annotation", None):
            return False
        if parent.type == "argument" and getattr(parent.children[0], "value", None) in _IDLE:
            return False
        if parent.type == "fstring" and " " in "".join(_texts(parent)):  # a sentence
            return False
        if parent.type == "atom_expr" and parent.get_code().strip().startswith("warnings.warn("):
            return False
        child = parent
    return True
